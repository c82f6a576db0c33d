# Crosses of python/cwnd/studies/papers/becn (ns2.csv) in ns-2 itself: flows of one kind, or half of
# them plain, over the paper's RED.
#
#   ns benches/peers/ns2-becn.tcl n 40 plain 20 ecn 1 delay 0.040 seed 1
#   ns benches/peers/ns2-becn.tcl n 45 ecn 1 set "Agent/TCP singledup_ 1"
#
# Prints, from 100 to 500 s: mean goodput of a flow in Mbit/s (packets of 1000 B) and loss in % of
# tested flows, both of plain flows beside them, utilisation in %, mean queue in kB.

array set arg {n 8 plain 0 ecn 0 delay 0.040 seed 1 set {}}
array set arg $argv
set warmup 100
set end 500

ns-random $arg(seed)
# The header is 40 B. What the paper leaves open is as in ns-2.1b8a: timeouts of at least 1 s and
# 6 s at first, no limited transmit.
foreach {name value} {packetSize_ 960 window_ 100 tcpTick_ 0.1 minrto_ 1.0 rtxcur_init_ 6.0 \
        singledup_ 0 timestamps_ 0} {
    Agent/TCP set $name $value
}
foreach {name value} {thresh_ 15 maxthresh_ 45 q_weight_ 0.002 linterm_ 10 gentle_ false \
        bytes_ true queue_in_bytes_ true setbit_ true mean_pktsize_ 1000} {
    Queue/RED set $name $value
}
foreach {class name value} $arg(set) { $class set $name $value }

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right 10Mb $arg(delay)s RED
$ns simplex-link $right $left 10Mb $arg(delay)s DropTail
$ns queue-limit $left $right 90
$ns queue-limit $right $left 100000
set start [new RandomVariable/Uniform]
$start set min_ 0
$start set max_ 5
for {set i 0} {$i < $arg(n)} {incr i} {
    set from [$ns node]
    set to [$ns node]
    foreach {a b} [list $from $left $right $to] {
        $ns duplex-link $a $b 100Mb 2ms DropTail
        $ns queue-limit $a $b 100000
        $ns queue-limit $b $a 100000
    }
    set sender($i) [new Agent/TCP/Newreno]
    # The last flows are the plain ones.
    set group($i) [expr {$i < $arg(n) - $arg(plain) ? 1 : 2}]
    $sender($i) set ecn_ [expr {$arg(ecn) && $group($i) == 1}]
    $sender($i) set fid_ $group($i)
    set sink [new Agent/TCPSink]
    $ns attach-agent $from $sender($i)
    $ns attach-agent $to $sink
    $ns connect $sender($i) $sink
    set source [new Application/FTP]
    $source attach-agent $sender($i)
    $ns at [$start value] "$source start"
}
set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $left $right] $monitor
$monitor set-bytes-integrator [new Integrator]

proc counts {} {
    global arg sender group monitor
    set found {}
    foreach g {1 2} {
        set acknowledged 0
        for {set i 0} {$i < $arg(n)} {incr i} {
            if {$group($i) == $g} { incr acknowledged [$sender($i) set ack_] }
        }
        set flow [[$monitor classifier] lookup auto 0 0 $g]
        set seen [expr {$flow eq "" ? {0 0} : [list [$flow set parrivals_] [$flow set pdrops_]]}]
        lappend found $acknowledged {*}$seen
    }
    set integrator [$monitor get-bytes-integrator]
    $integrator newpoint [[Simulator instance] now] [$integrator set lasty_]
    lappend found [$monitor set bdepartures_] [$integrator set sum_]
}
proc finish {} {
    global arg before warmup end
    set time [expr {double($end - $warmup)}]
    foreach now [counts] then $before { lappend grown [expr {$now - $then}] }
    lassign $grown acked arrived drops acked2 arrived2 drops2 bytes area
    foreach {a all lost number} [list $acked $arrived $drops [expr {$arg(n) - $arg(plain)}] \
            $acked2 $arrived2 $drops2 $arg(plain)] {
        if {!$number} continue
        puts -nonewline [format "%.6f %.4f " [expr {$a * 8e3 / 1e6 / $time / $number}] \
            [expr {100.0 * $lost / $all}]]
    }
    puts [format "%.4f %.4f" [expr {$bytes * 8 / 1e5 / $time}] [expr {$area / $time / 1e3}]]
    exit 0
}
$ns at $warmup { set before [counts] }
$ns at $end finish
$ns run
