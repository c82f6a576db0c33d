# The benchmark's scenarios in ns-2: FLOWS SACK transfers over one link. Prints the number of data
# packets that were acknowledged.
#
#   ns ns2.tcl FLOWS MBIT RTT_MS SECONDS fifo|red
#
# Two nodes only, as in ns3.cc. ns-2 2.35 has no CoDel: RED replaces it, and costs no more.

lassign $argv flows mbit rtt_ms seconds queue
set packet 1500
set bdp [expr {int($mbit * 1e6 * $rtt_ms / 1e3 / 8 / $packet)}]

Agent/TCP set packetSize_ [expr {$packet - 40}]
Agent/TCP set window_ 1000000
Agent/TCP set windowInit_ 10
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 1.0
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false

set ns [new Simulator]
# Nothing is written and nothing traced: packet headers that no agent uses cost, too.
remove-all-packet-headers
add-packet-header IP TCP Flags
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver ${mbit}Mb [expr {$rtt_ms / 2.0}]ms [expr {$queue eq "fifo" ? "DropTail" : "RED"}]
$ns queue-limit $sender $receiver [expr {$queue eq "fifo" ? $bdp : 1000}]
$ns queue-limit $receiver $sender 100000

set start [new RandomVariable/Uniform]
$start set min_ 0
$start set max_ [expr {$flows == 1 ? 0 : 1}]
for {set i 0} {$i < $flows} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1]
    set sink($i) [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at [$start value] "$ftp($i) start"
}

$ns at $seconds finish
proc finish {} {
    global tcp flows
    set packets 0
    for {set i 0} {$i < $flows} {incr i} {
        # Acknowledged packets were delivered; numbers begin at 0.
        incr packets [expr {[$tcp($i) set ack_] + 1}]
    }
    puts $packets
    exit 0
}
$ns run
