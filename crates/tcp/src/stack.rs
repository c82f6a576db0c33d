//! Stacks: the mechanisms of an implementation or a standard, each stack as one value.
//!
//! Tests apart, no other file of this crate selects mechanisms by the name of a stack.

use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::{PresetOf, Presets};

use crate::cwnd_validation::{self, GrowBy, LimitedBy, RestartWindow};
use crate::echo::EchoKind;
use crate::params::{
    AckRule, EchoAtOne, LossRule, Params, PipeRule, ProbingParams, QuenchAnswer, Recovery, RttFrom,
    TimingParams, TsoParams, WindowProbe, acks, connection, detection, ecn, recovery, rto, rtt,
};
use crate::prr::{self, PrrRule};
use crate::quic;
use crate::rtt::RttArithmetic;
use crate::spurious_timeout;

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "rfc",
            "The standards track of today: RFC 9293 and 5681 with RACK and tail loss probes (RFC \
             8985) and PRR (RFC 9937). In a file of schema 1 this name means `rfc6675`.",
            Self::standards_track,
        ),
        PresetOf::new(
            "rfc6675",
            "RFC 6675 recovery with the RFC 6298 timer, the standards before RACK.",
            Self::default,
        ),
        PresetOf::new(
            "ns2",
            "ns-2's one-way TCP agents: 1000 B packets, 40 B ACKs, no handshake, an ACK each, 100 \
             ms clock, no SACK.",
            Self::ns2,
        ),
        PresetOf::new(
            "linux",
            "Linux: timeout 200 ms above the RTT or more, RACK, PRR for losses and ECN, tail loss \
             probes, ACKs delayed up to 40 ms or quick, RTT in microseconds. (Its pacing is not \
             here.)",
            Self::linux,
        ),
        PresetOf::new(
            "linux-2.6.18",
            "Linux 2.6.18 of 2006, as the delay-based AIMD thesis had it: controllers see echoed \
             timestamps, and chunks of 64 kB wait until they are full, however long.",
            || Self::linux_2_6(RttFrom::Timer, None),
        ),
        PresetOf::new(
            "linux-2.6.22",
            "Linux 2.6.22: controllers see the oldest segment by the sender's own notes, and \
             chunks wait for 5 ms at most.",
            || Self::linux_2_6(RttFrom::Oldest, Some(Duration::from_millis(5))),
        ),
        PresetOf::new("linux-2.6.24", "Linux 2.6.24: the same with the newest segment.", || {
            Self::linux_2_6(RttFrom::Newest, Some(Duration::from_millis(5)))
        }),
        PresetOf::new(
            "freebsd-6.1",
            "FreeBSD 6.1 of 2006, as in the TCP*(n) paper: SACK, three segments at first, ACKs \
             delayed up to 100 ms, timeout 3 s at first and 200 ms above the RTT or more, doubling \
             up to 64 times; five SYNs before their timeout doubles.",
            Self::freebsd_6_1,
        ),
        PresetOf::new(
            "freebsd",
            "FreeBSD 14 and 15: its stack of default settings, for either end. ACKs delayed by up \
             to 40 ms, timeout 200 ms above what was backed off, lost retransmissions found and \
             answered, PRR for losses and ECN, windows that grow whether they are used or not.",
            Self::freebsd,
        ),
        PresetOf::new(
            "freebsd-rack",
            "FreeBSD 14 and 15 with the RACK stack: losses by time, a tail loss probe, RTT in \
             microseconds, timeouts of at most 4 s. (Its pacing is not here.)",
            Self::freebsd_rack,
        ),
        PresetOf::new(
            "becn",
            "The BECN paper's senders and receivers: those of ns-2 with windows of at most 100 kB, \
             ECN-capable without asking the receiver, which echoes nothing; source quenches are \
             obeyed.",
            || Self::becn().with(|p| p.quench.obey_quench = true),
        ),
        PresetOf::new(
            "squid",
            "The same with RFC 1016 in place of the window's reduction: a pause between packets.",
            || {
                Self::becn().with(|p| {
                    p.quench.obey_quench = true;
                    p.quench.quench_answer = QuenchAnswer::Pause;
                })
            },
        ),
    ];
}

impl Presets for quic::Params {
    const PRESETS: &'static [PresetOf<Self>] = &[PresetOf::new(
        "quic",
        "QUIC in place of TCP: loss recovery and windows of RFC 9002, ACKs of RFC 9000 § 13.2, \
         with keys of its own.",
        Self::default,
    )];
}

impl Params {
    /// The standards track of 2026: loss detection by RFC 8985 and reduction by RFC 9937, on RFC
    /// 9293, 5681, 6298, 7323 and 2018.
    fn standards_track() -> Self {
        Self {
            detection: detection::Params {
                loss_rule: LossRule::Rack,
                lost_retransmissions: true,
                tail_loss_probe: true,
                ..Default::default()
            },
            recovery: recovery::Params {
                // RFC 5681 § 4.3: the loss of a retransmission is a second indication of
                // congestion.
                lost_retransmissions_reduce: true,
                // RFC 8985 § 7 repairs a lost tail by tail loss probes.
                rescue_holes: false,
                ..Default::default()
            },
            prr: prr::Params { prr: true, prr_rule: PrrRule::Rfc9937, ..Default::default() },
            // RFC 8985 § 4 recommends D-SACK, to measure reordering.
            acks: acks::Params { dsack: true, ..Default::default() },
            ..Self::default()
        }
    }

    /// ns-2's one-way agents (tcp/tcp.cc, `TcpAgent`, whose defaults tcl/lib/ns-default.tcl sets;
    /// tcp/tcp-newreno.cc, tcp/tcp-sack1.cc).
    fn ns2() -> Self {
        Self {
            packets: connection::Packets {
                mss: Bytes(1000),
                header: Bytes(0),
                ack_size: Bytes(40),
            },
            windows: connection::Windows { initial_window: 2, ..Default::default() },
            connection: connection::Params { handshake: false, ..Default::default() },
            recovery: recovery::Params { recovery: Recovery::NewReno, ..Default::default() },
            detection: detection::Params {
                pipe_rule: PipeRule::CountedByAcks,
                ..Default::default()
            },
            rtt: rtt::Params {
                timestamps: false,
                clock: Duration::from_millis(100),
                rtt_arithmetic: RttArithmetic::Ticks,
                ..Default::default()
            },
            acks: acks::Params { ack_every: 1, ..Default::default() },
            ecn: ecn::Params {
                ecn_retransmissions: true,
                ecn_in_loss: true,
                ecn_after_timeout: true,
                ecn_at_one: EchoAtOne::BacksOff,
                ..Default::default()
            },
            rto: rto::Params {
                rto_min: Duration::from_millis(200),
                rto_initial: Duration::from_secs(3),
                rto_granularity: Duration::from_millis(100),
                ..Default::default()
            },
            validation: cwnd_validation::Params { idle_restart: false, ..Default::default() },
            ..Self::default()
        }
    }

    /// Linux 6.18 with default settings; most lines name their file in net/ipv4 or include/net
    /// and a function or constant. Defaults of sysctls are those of tcp_ipv4.c, `tcp_sk_init`.
    fn linux() -> Self {
        Self {
            connection: Self::connections_of_linux(),
            detection: detection::Params {
                // tcp_recovery.c, tcp_rack_detect_loss: by time, retransmissions as well
                // (tcp_recovery = 1).
                loss_rule: LossRule::Rack,
                lost_retransmissions: true,
                // tcp_output.c, tcp_schedule_loss_probe (tcp_early_retrans = 3) and
                // tcp_send_loss_probe.
                tail_loss_probe: true,
                // tcp_input.c, tcp_clean_rtx_queue and tcp_match_skb_to_sack.
                whole_segments: true,
                ..Default::default()
            },
            recovery: Self::recovery_of_linux(),
            prr: prr::Params {
                // tcp_input.c, tcp_cwnd_reduction.
                prr: true,
                prr_rule: PrrRule::WholeSegments,
                // tcp_input.c, tcp_enter_cwr.
                prr_on_ecn: true,
            },
            // tcp_cong.c, tcp_reno_ssthresh: two segments at least.
            ecn: ecn::Params { ecn_at_one: EchoAtOne::Sends, ..Default::default() },
            acks: acks::Params {
                // include/net/tcp.h: TCP_ATO_MIN and TCP_DELACK_MIN, HZ / 25.
                ack_delay: Duration::from_millis(40),
                // tcp_input.c, __tcp_ack_snd_check and tcp_enter_quickack_mode.
                ack_policy: AckRule::Quick,
                // tcp_input.c, tcp_dsack_set (tcp_dsack = 1).
                dsack: true,
                // tcp_output.c, __tcp_transmit_skb: TCPHDR_PSH of several segments, since 5.4.
                push_bursts: true,
                ..Default::default()
            },
            rtt: rtt::Params {
                // tcp_output.c, tcp_mstamp_refresh: microseconds.
                clock: Duration::from_micros(1),
                // tcp_input.c, tcp_rtt_estimator.
                rtt_arithmetic: RttArithmetic::WindowedDeviation,
                // tcp_input.c, tcp_ack_update_rtt.
                rtt_from_notes: true,
                ..Default::default()
            },
            rto: Self::timer_of_linux(),
            spurious: spurious_timeout::Params {
                // tcp_input.c, tcp_process_loss (tcp_frto = 2).
                timeout_frto: true,
                // tcp_input.c, tcp_try_undo_loss by tcp_packet_delayed.
                timeout_eifel: true,
            },
            probing: ProbingParams {
                // tcp_output.c, tcp_write_wakeup and tcp_xmit_probe_skb: snd_una − 1.
                window_probe: WindowProbe::Before,
                // tcp_input.c, tcp_ack_probe.
                probe_answer_restarts: true,
            },
            validation: cwnd_validation::Params {
                // tcp_input.c, tcp_cong_control: by acked_sacked, in the state after this ACK.
                grow_by: GrowBy::Delivered,
                grow_on_exit: true,
                // include/net/tcp.h, tcp_is_cwnd_limited.
                cwnd_limited: LimitedBy::Round,
                // tcp_output.c, tcp_cwnd_restart (tcp_slow_start_after_idle = 1).
                restart_window: RestartWindow::Halved,
                ..Default::default()
            },
            ..Self::default()
        }
    }

    fn connections_of_linux() -> connection::Params {
        connection::Params {
            // tcp_timer.c, tcp_write_timeout: tcp_syn_retries = 6 and tcp_syn_linear_timeouts = 4.
            syn_retries: 10,
            // tcp_timer.c, retransmits_timed_out: tcp_retries2 = 15.
            data_retry_time: Some(LINUX_R2),
            ..Default::default()
        }
    }

    fn recovery_of_linux() -> recovery::Params {
        recovery::Params {
            // tcp_output.c, tcp_xmit_retransmit_queue: lost segments alone.
            rescue_holes: false,
            // tcp_input.c, tcp_ack: label old_ack.
            sack_in_old_acks: true,
            // tcp_input.c, tcp_check_sack_reneging.
            reneging_shortens_rto: true,
            // tcp_input.c, tcp_fastretrans_alert: FLAG_LOST_RETRANS in TCP_CA_Loss.
            recovers_in_loss: true,
            // tcp_input.c, tcp_enter_recovery: from TCP_CA_CWR high_seq stays.
            reduced_window_ends_recovery: true,
            // tcp_input.c, tcp_enter_loss: not if high_seq is after snd_una.
            timeout_keeps_threshold: true,
            ..Default::default()
        }
    }

    fn timer_of_linux() -> rto::Params {
        rto::Params {
            // include/net/tcp.h: TCP_RTO_MIN, HZ / 5 (tcp_rto_min_us); tcp_input.c,
            // tcp_rtt_estimator: mdev_max_us is no less.
            rto_min: Duration::from_millis(200),
            rto_variation_min: Duration::from_millis(200),
            // include/net/tcp.h: TCP_RTO_MAX_SEC (tcp_rto_max_ms = 120000).
            rto_max: Duration::from_secs(120),
            // tcp_timer.c, tcp_retransmit_timer: total_rto > tcp_syn_linear_timeouts.
            syn_backoff_after: Some(4),
            ..Default::default()
        }
    }

    /// FreeBSD 6.1 (sys/netinet), the testbed of Mondal & Kuzmanovic 2008.
    fn freebsd_6_1() -> Self {
        Self {
            // tcp_input.c, tcp_mss: tcp_do_rfc3390 = 1, 4380 B.
            windows: connection::Windows { initial_window: 3, ..Default::default() },
            connection: connection::Params {
                // Number of SYN retransmissions within TCPTV_KEEP_INIT, 75 s.
                syn_retries: 8,
                // tcp_timer.h: TCP_MAXRXTSHIFT.
                data_retries: Some(12),
                ..Default::default()
            },
            // tcp_timer.h: TCPTV_DELACK.
            acks: acks::Params { ack_delay: Duration::from_millis(100), ..Default::default() },
            rto: rto::Params {
                rto_min: Duration::from_millis(30),
                // tcp_timer.h: TCPTV_CPU_VAR, hz / 5.
                rto_variation_min: Duration::from_millis(200),
                // tcp_timer.h: TCPTV_RTOBASE; TCPTV_REXMTMAX.
                rto_initial: Duration::from_secs(3),
                rto_max: Duration::from_secs(64),
                // Mondal & Kuzmanovic 2008, footnote 5.
                rto_backoff_rounds: Some(6),
                // tcp_timer.c, tcp_syn_backoff: 1, 1, 1, 1, 1, 2, 4 … 64, 64.
                syn_backoff_after: Some(4),
                syn_backoff_rounds: Some(10),
                ..Default::default()
            },
            ..Self::default()
        }
    }

    /// Linux of 2006 to 2008 (net/ipv4 of 2.6.18 and 2.6.24): FACK and rate halving, three segments
    /// at first, timestamps of milliseconds (McCullagh 2008, ch. 5).
    fn linux_2_6(rtt_from: RttFrom, tso_defer: Option<Duration>) -> Self {
        Self {
            // tcp_input.c, tcp_init_cwnd.
            windows: connection::Windows { initial_window: 3, ..Default::default() },
            connection: connection::Params {
                // include/net/tcp.h: TCP_SYN_RETRIES.
                syn_retries: 5,
                // tcp_timer.c, tcp_write_timeout, counts: tcp_retries2 = 15.
                data_retry_time: Some(LINUX_R2),
                ..Default::default()
            },
            // tcp_input.c, tcp_cwnd_down; tcp_enter_cwr.
            prr: prr::Params { prr: true, prr_rule: PrrRule::RateHalving, prr_on_ecn: true },
            detection: detection::Params {
                // tcp_input.c, tcp_update_scoreboard: tcp_fack = 1.
                loss_rule: LossRule::Fack,
                // tcp_input.c, tcp_sacktag_write_queue; 2.6.24: tcp_mark_lost_retrans.
                lost_retransmissions: true,
                ..Default::default()
            },
            timing: TimingParams { rtt_from, ..Default::default() },
            // include/net/tcp.h: TCP_DELACK_MIN, HZ / 25.
            acks: acks::Params { ack_delay: Duration::from_millis(40), ..Default::default() },
            // tcp_output.c, tcp_tso_should_defer.
            tso: TsoParams { tso: Some(Bytes(65_536)), tso_defer, ..Default::default() },
            // tcp_cong.c, tcp_reno_ssthresh: two segments at least.
            ecn: ecn::Params { ecn_at_one: EchoAtOne::Sends, ..Default::default() },
            // include/net/tcp.h: TCP_RTO_MIN, TCP_TIMEOUT_INIT, TCP_RTO_MAX.
            rto: rto::Params {
                rto_min: Duration::from_millis(200),
                rto_variation_min: Duration::from_millis(200),
                rto_initial: Duration::from_secs(3),
                rto_max: Duration::from_secs(120),
                ..Default::default()
            },
            ..Self::default()
        }
    }

    /// FreeBSD 14 and 15, net.inet.tcp.functions_default = freebsd, with hz = 1000; comments name
    /// files of sys/netinet, and functions, variables or constants.
    fn freebsd() -> Self {
        Self {
            connection: connection::Params {
                // tcp_timer.h: number of SYN retransmissions within TCPTV_KEEP_INIT, 75 s.
                syn_retries: 6,
                // tcp_timer.c: V_tcp_retries = TCP_MAXRXTSHIFT.
                data_retries: Some(12),
                ..Default::default()
            },
            // tcp_input.c, tcp_do_prr_ack: V_tcp_do_prr = 1.
            prr: prr::Params { prr: true, prr_rule: PrrRule::RoundedUp, prr_on_ecn: true },
            // tcp_sack.c, tcp_sack_lost_retransmission: V_tcp_do_lrd = 1.
            detection: detection::Params { lost_retransmissions: true, ..Default::default() },
            recovery: recovery::Params { lost_retransmissions_reduce: true, ..Default::default() },
            acks: acks::Params {
                // tcp_timer.h: TCPTV_DELACK, hz / 25.
                ack_delay: Duration::from_millis(40),
                // tcp_sack.c, tcp_update_dsack_list; a sender only counts them (tcp_record_dsack).
                dsack: true,
                ..Default::default()
            },
            // tcp_input.c, cc_cong_signal: CC_RTO_ERR, by t_badrxtwin.
            spurious: spurious_timeout::Params { timeout_frto: false, timeout_eifel: true },
            // cc/cc_newreno.c, newreno_cong_signal: two segments at least.
            ecn: ecn::Params { ecn_at_one: EchoAtOne::Sends, ..Default::default() },
            rto: rto::Params {
                // tcp_timer.h: TCPTV_MIN, hz / 33; TCPTV_CPU_VAR, hz / 5; TCPTV_RTOBASE, hz;
                // TCPTV_REXMTMAX, 64 hz.
                rto_min: Duration::from_millis(30),
                rto_slop: Duration::from_millis(200),
                rto_initial: Duration::from_secs(1),
                rto_max: Duration::from_secs(64),
                // tcp_timer.c, tcp_backoff: 1, 2, 4 … 512, 512.
                rto_backoff_rounds: Some(9),
                ..Default::default()
            },
            validation: cwnd_validation::Params {
                // tcp_input.c, cc_ack_received: V_tcp_do_newcwv = 0.
                cwnd_limited: LimitedBy::Always,
                // cc/cc.c, newreno_cc_after_idle.
                restart_window: RestartWindow::Threshold,
                ..Default::default()
            },
            ..Self::default()
        }
    }

    /// FreeBSD 14 and 15 with net.inet.tcp.functions_default = rack (sys/netinet/tcp_stacks:
    /// `rack.c`).
    fn freebsd_rack() -> Self {
        Self::freebsd().with(|p| {
            p.detection.loss_rule = LossRule::Rack;
            p.detection.tail_loss_probe = true;
            // rack_log_ack signals a loss only outside recovery. rack_update_prr counts in bytes
            // (quotient plus one), without tcp_do_prr_ack's rounding to segments.
            p.recovery.lost_retransmissions_reduce = false;
            p.prr.prr_rule = PrrRule::Rfc6937;
            // newreno_cong_signal: an ECN-echo sets the window at once, without PRR.
            p.prr.prr_on_ecn = false;
            p.rtt.clock = Duration::from_micros(1);
            // rack_rto_max, 4,000,000 µs.
            p.rto.rto_max = Duration::from_secs(4);
        })
    }

    /// Endpoints of BECN § V-A, without the response to quenches, which the presets add.
    fn becn() -> Self {
        Self::ns2().with(|p| {
            p.windows.max_window = Some(Bytes(100_000));
            // ns-2's Newreno.
            p.validation.grow_on_exit = true;
            p.ecn.ecn = true;
            p.ecn.obey_ece = false;
            p.acks.echo = EchoKind::None;
        })
    }
}

/// R2 of Linux by `tcp_retries2` = 15 (tcp_timer.c, `tcp_model_timeout`): 200 ms doubled nine
/// times, up to 102.4 s, and 120 s six times more.
const LINUX_R2: Duration = Duration::from_millis(200 * ((1 << 10) - 1) + 6 * 120_000);
