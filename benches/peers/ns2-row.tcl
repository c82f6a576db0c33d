# A row of python/cwnd/studies/peers/recorded/ns2.csv in ns-2 itself, to find the cause of a
# difference:
#
#   ns benches/peers/ns2-row.tcl tcp Linux n 1 ecn 0 rtt 0.100 red "20 60" seed 7
#   ns benches/peers/ns2-row.tcl tcp Sack1 n 10 ecn 1 rtt 0.020 red "5 15" start 1.0 \
#       set "Agent/TCP singledup_ 0"
#
# Prints, after a warm-up of 30 s: goodput in Mbit/s (packets of 1500 B), median queueing delay over
# time in ms, drops, marks.

array set arg {tcp Newreno n 1 ecn 0 rtt 0.020 red {5 15} fifo 17 start 0.1 seed 1 window 1136 set {}}
array set arg $argv
set rate 10e6
set packet 1500
set warmup 30
set end 120

ns-random $arg(seed)
# The header is 40 B, and timestamps take 10 B more.
foreach {name value} [list packetSize_ [expr {$packet - 50}] window_ $arg(window) windowInit_ 10 tcpTick_ 0.001 \
        minrto_ 1.0 timestamps_ 1 ecn_ $arg(ecn)] {
    Agent/TCP set $name $value
}
if {[llength $arg(red)] == 2} {
    lassign $arg(red) min max
    foreach {name value} [list thresh_ $min maxthresh_ $max q_weight_ 0.002 linterm_ 10 gentle_ true bytes_ false \
            queue_in_bytes_ false setbit_ $arg(ecn) mean_pktsize_ $packet] {
        Queue/RED set $name $value
    }
}
foreach {class name value} $arg(set) { $class set $name $value }

set ns [new Simulator]
set near [$ns node]
set far [$ns node]
set fifo [expr {[llength $arg(red)] != 2}]
$ns duplex-link $near $far $rate [expr {$arg(rtt) / 2 - 0.002}]s [expr {$fifo ? "DropTail" : "RED"}]
$ns queue-limit $near $far [expr {$fifo ? $arg(fifo) : 1000}]
$ns queue-limit $far $near 100000
for {set i 0} {$i < $arg(n)} {incr i} {
    set from [$ns node]
    set to [$ns node]
    foreach {a b} [list $from $near $far $to] {
        $ns duplex-link $a $b 100Mb 1ms DropTail
        $ns queue-limit $a $b 100000
        $ns queue-limit $b $a 100000
    }
    set sender($i) [new Agent/TCP/$arg(tcp)]
    set sink [new Agent/TCPSink[expr {$arg(tcp) eq "Newreno" ? "" : "/Sack1"}]]
    $sink set ts_echo_rfc1323_ true
    $ns attach-agent $from $sender($i)
    $ns attach-agent $to $sink
    $ns connect $sender($i) $sink
    if {$arg(tcp) eq "Linux"} { $ns at 0 "$sender($i) select_ca cubic" }
    set source [new Application/FTP]
    $source attach-agent $sender($i)
    $ns at [expr {double($arg(start)) * $i / $arg(n)}] "$source start"
}
set queue [$ns monitor-queue $near $far ""]

proc counts {} {
    global arg sender queue
    set acknowledged 0
    for {set i 0} {$i < $arg(n)} {incr i} { incr acknowledged [$sender($i) set ack_] }
    list $acknowledged [$queue set pdrops_] [$queue set pmarks_]
}
proc look {} {
    global ns queue lengths
    lappend lengths [$queue set pkts_]
    $ns at [expr {[$ns now] + 0.005}] look
}
proc finish {} {
    global before lengths packet rate warmup end
    lassign [counts] acknowledged drops marks
    lassign $before a d m
    set median [lindex [lsort -integer $lengths] [expr {[llength $lengths] / 2}]]
    puts [format "%.3f %.1f %d %d" [expr {($acknowledged - $a) * $packet * 8 / 1e6 / ($end - $warmup)}] \
        [expr {$median * $packet * 8e3 / $rate}] [expr {$drops - $d}] [expr {$marks - $m}]]
    exit 0
}
$ns at $warmup { set before [counts]; look }
$ns at $end finish
$ns run
