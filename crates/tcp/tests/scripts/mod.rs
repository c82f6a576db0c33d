//! Tests of the endpoint by scripts; README.md describes their format.

mod player;
mod script;

mod runner {
    use std::path::{Path, PathBuf};

    use super::player::play;
    use super::script::Script;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
    }

    /// Plays the script of this name; a failure names file and line.
    pub fn run(name: &str) {
        let path = folder().join(name).with_extension("script");
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(error) = Script::parse(&text).and_then(|script| play(&script)) {
            panic!("crates/tcp/tests/scripts/{name}.script:{error}");
        }
    }

    #[test]
    fn every_script_is_a_test() {
        let listed = include_str!("mod.rs");
        let mut count = 0;
        for topic in std::fs::read_dir(folder()).unwrap() {
            let topic = topic.unwrap().path();
            if !topic.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(topic).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|e| e == "script") {
                    let name = path.file_stem().unwrap().to_str().unwrap();
                    assert!(listed.contains(&format!("    {name},\n")), "{name} is not listed");
                    count += 1;
                }
            }
        }
        assert!(count >= 80, "only {count} scripts");
    }

    fn outcome(events: &str) -> Result<(), String> {
        play(&Script::parse(&format!("# A script.\nsender\n{events}")).unwrap())
    }

    /// Returns the message of a failure, without the transcript.
    fn failure(events: &str) -> String {
        let error = outcome(events).unwrap_err();
        error.split("\nuntil then:").next().unwrap().replace("\n     ", ", ")
    }

    #[test]
    fn a_script_that_is_right_passes() {
        assert_eq!(outcome("* write 2000\n* > 0:2000\n@1s > 0:1000\n"), Ok(()));
    }

    #[test]
    fn what_leaves_may_do_so_between_two_times() {
        let again = |when: &str| format!("* write 1000\n* > 0:1000\n{when} > 0:1000\n");
        for when in ["+1s", "@1s~1100ms", "+900ms~1s", "+900ms~2s"] {
            assert_eq!(outcome(&again(when)), Ok(()), "{when}");
        }
        let late = failure(&again("@1001ms~1100ms"));
        assert_eq!(late, "5: expected from 1.001 s to 1.1 s `> 0:1000`, got at 1 s `> 0:1000`");
        let early = failure(&again("+0~999ms"));
        assert_eq!(early, "5: expected from 0 ns to 999 ms `> 0:1000`, got nothing");
        // The next line's time counts from the time at which the segment was sent.
        assert_eq!(outcome(&format!("{}+1s timer 3s\n", again("+900ms~2s"))), Ok(()));
    }

    #[test]
    fn a_tolerance_is_for_all_that_leaves() {
        let again =
            |ms: u32| format!("tolerance 4ms\n* write 1000\n* > 0:1000\n@{ms}ms > 0:1000\n");
        for ms in [996, 1000, 1004] {
            assert_eq!(outcome(&again(ms)), Ok(()), "{ms}");
        }
        assert_eq!(
            failure(&again(1005)),
            "6: expected from 1.001 s to 1.009 s `> 0:1000`, got at 1 s `> 0:1000`"
        );
        assert_eq!(
            failure(&again(995)),
            "6: expected from 991 ms to 999 ms `> 0:1000`, got nothing"
        );
    }

    #[test]
    fn a_script_that_is_wrong_fails_at_its_line() {
        let wrong = [
            ("* write 2000\n* > 0:1000\n", "4: not expected: at 0 ns `> 1000:2000`"),
            (
                "* write 1000\n* > 0:1000\n@999ms > 0:1000\n",
                "5: expected at 999 ms `> 0:1000`, got nothing",
            ),
            (
                "* write 1000\n* > 0:1000\n@1001ms > 0:1000\n",
                "5: expected at 1.001 s `> 0:1000`, got at 1 s `> 0:1000`",
            ),
            (
                "* write 1000\n* > 0:1000 cwr\n",
                "4: expected at 0 ns `> 0:1000 cwr`, got at 0 ns `> 0:1000`",
            ),
            ("* cwnd 9000\n", "3: expected cwnd 9000, got cwnd 10000"),
            ("* write 1000\n* > 0:1000\n@1s quiet\n", "5: not expected: at 1 s `> 0:1000`"),
        ];
        for (events, expected) in wrong {
            assert_eq!(failure(events), expected);
        }
    }

    #[test]
    fn a_failure_tells_what_happened_until_then() {
        let error = outcome("* write 1000\n* > 0:1000\n+5ms < ack 1000\n* una 0\n").unwrap_err();
        assert!(error.ends_with("0.000 ms > 0:1000\n       5.000 ms < ack 1000\n"), "{error}");
    }

    #[test]
    fn what_is_no_script_is_refused_with_its_line() {
        for (text, expected) in [
            ("sender\n* write 1\n", "1: the first line must say what is shown, by which clause"),
            ("# x\n* wrote 5 6\n", "2: not an event: `wrote 5 6`"),
            ("# x\n5 write 6\n", "2: a time is `+100ms`, `@2s`, `+100ms~104ms` or `*`, not `5`"),
            ("# x\n+1s~2s write 6\n", "2: only what leaves may do so between two times"),
            ("# x\n+2s~1s > 0:1\n", "2: 2s~1s ends before it begins"),
            ("# x\nsender\n", "nothing happens"),
        ] {
            assert_eq!(Script::parse(text).err().as_deref(), Some(expected));
        }
    }
}

/// Defines a test for each script of a folder.
macro_rules! scripts {
    ($topic:ident: $($name:ident,)*) => {
        mod $topic {
            $(#[test]
            fn $name() {
                crate::scripts::runner::run(concat!(stringify!($topic), "/", stringify!($name)));
            })*
        }
    };
}

scripts!(
    duplicates:
    an_ack_for_what_was_never_sent_is_ignored,
    an_ack_that_changes_the_window_is_no_duplicate,
    an_ack_with_nothing_outstanding_is_no_duplicate,
    an_old_ack_is_ignored,
    cubic_keeps_seven_tenths,
    duplicates_of_what_a_timeout_repeated_start_no_recovery,
    new_data_acknowledged_begins_the_count_anew,
    one_ack_that_reports_three_segments_is_enough,
    the_third_duplicate_ack_is_a_loss,
    with_sack_an_ack_that_tells_nothing_new_is_no_duplicate,
);

scripts!(
    limited_transmit:
    each_of_the_first_two_duplicates_sends_a_new_segment,
    more_than_two_duplicates_send_no_more,
    reordering_by_two_segments_costs_nothing,
    the_receive_window_bounds_limited_transmit,
    with_sack_only_what_reports_anything_new_sends,
    without_new_data_nothing_is_sent,
);

scripts!(
    newreno:
    a_partial_ack_of_less_than_a_segment_adds_nothing_back,
    a_partial_ack_sends_the_next_hole_and_deflates_the_window,
    each_further_duplicate_inflates_the_window,
    only_the_first_partial_ack_restarts_the_timer,
    reno_leaves_recovery_with_the_first_new_ack,
    tahoe_goes_back_to_one_segment,
    the_ack_that_ends_recovery_may_open_the_window,
    three_holes_take_three_round_trips,
);

scripts!(
    sack:
    a_block_below_the_ack_marks_nothing,
    a_block_beyond_what_was_sent_is_ignored,
    a_doubtful_hole_is_sent_if_nothing_else_can_be_and_the_tail_once,
    a_hole_may_be_filled_as_soon_as_anything_above_it_was_sacked,
    a_lost_retransmission_goes_again_when_later_data_was_sacked,
    a_lost_retransmission_waits_for_the_timer,
    a_receiver_that_reneges_gets_the_segment_again,
    after_a_timeout_only_what_is_missing_is_sent_again,
    an_ack_that_begins_a_recovery_may_count_for_nothing,
    an_ack_that_was_lost_is_made_good_by_the_next,
    each_partial_ack_restarts_the_timer,
    forward_acknowledgement_counts_how_far_sacks_reach,
    holes_are_repaired_from_below_before_new_data_is_sent,
    linux_begins_a_recovery_with_an_overtaken_ack,
    linux_sends_no_doubtful_hole_again,
    linux_uses_the_blocks_of_an_ack_that_was_overtaken,
    lost_segments_may_stay_in_the_pipe_until_a_partial_ack,
    new_data_is_sent_while_a_hole_is_repaired,
    nothing_is_sent_until_pipe_is_below_the_window,
    recovery_lasts_until_the_recovery_point_is_acknowledged,
    the_ack_that_ends_recovery_may_count_for_what_it_brings,
    the_blocks_of_an_ack_that_was_overtaken_are_ignored,
    the_flight_may_be_the_pipe,
    the_tail_is_not_rescued_before_more_than_the_fast_retransmit_arrived,
    three_discontiguous_ranges_make_a_hole_lost,
    two_segments_above_are_not_enough_and_one_byte_more_is,
    what_duplicates_told_of_may_count_for_growth_no_more,
    what_went_again_may_stay_in_the_pipe_until_it_is_acknowledged,
    without_sack_an_echo_takes_a_recovery_back,
    without_sack_segments_that_came_late_have_more_duplicates_before_they_are_lost,
);

scripts!(
    prr:
    a_loss_that_reduces_again_begins_its_own_reduction,
    after_a_burst_of_losses_one_segment_more_than_was_delivered,
    linux_adds_a_segment_only_where_recovery_goes_well,
    linux_reduces_again_for_a_mark_on_what_was_sent_meanwhile,
    linux_shows_what_is_in_flight_and_may_follow,
    linux_spreads_the_reduction_for_a_mark_over_the_round_trip,
    one_segment_goes_out_for_every_two_delivered,
    what_a_partial_ack_acknowledges_counts_as_delivered,
    what_was_reported_by_sack_before_does_not_count_as_delivered_again,
    what_was_sacked_is_left_out_of_a_further_reduction_too,
);

scripts!(
    ecn:
    a_loss_in_a_window_reduced_for_a_mark_may_reduce_it_again,
    a_loss_in_a_window_reduced_for_a_mark_reduces_no_further,
    a_mark_in_a_window_reduced_for_a_loss_reduces_no_further,
    a_retransmission_carries_neither_ect_nor_cwr,
    a_retransmission_of_a_sender_that_reads_loads_is_ecn_capable,
    a_window_probe_carries_neither_ect_nor_cwr,
    abe_halves_for_a_mark_in_slow_start,
    abe_keeps_four_fifths_for_a_mark_and_half_for_a_loss,
    after_a_timeout_the_first_new_segment_carries_cwr,
    an_echo_at_a_window_of_one_may_go_unheeded,
    an_echo_at_a_window_of_one_waits_for_the_timer,
    an_echo_may_count_while_a_timeout_is_repaired,
    an_echo_may_reduce_a_window_that_recovers,
    cubic_answers_a_mark_as_a_loss_unless_told_otherwise,
    echo_after_echo_at_a_window_of_one_may_back_off,
    recovery_in_a_reduced_window_may_end_with_it,
    retransmissions_may_be_capable_and_say_cwr,
    tahoe_answers_a_loss_with_cwr_too,
    the_first_echo_after_a_timeout_may_count_whatever_it_acknowledges,
    the_window_is_halved_once_a_window_of_data,
    without_ecn_an_echo_is_ignored,
);

scripts!(
    quench:
    a_dropped_packet_halves_the_window_which_grows_on,
    a_marked_packet_halves_the_window_which_rests_for_a_round_trip,
    a_quench_about_nothing_outstanding_is_ignored,
    a_quench_in_the_window_of_an_echo_reduces_no_further,
    a_window_of_one_segment_stays,
    an_echo_in_the_window_of_a_quench_reduces_no_further,
    cubic_halves_too,
    each_level_has_its_factor,
    in_1998_the_window_grew_at_once,
    linux_rests_once_more_when_the_echo_comes,
    squid_pauses_between_packets,
    the_loss_that_a_quench_told_of_halves_no_further,
    the_receiver_echoes_nothing_if_it_was_not_asked,
    too_many_wrong_guesses_make_deaf_for_a_round_trip,
    unless_told_to_a_sender_ignores_quenches,
    without_the_check_any_number_counts,
);

scripts!(
    ecn_receiver:
    a_delayed_ack_echoes_a_mark_on_any_of_its_segments,
    a_mark_above_a_gap_is_echoed_with_the_duplicate_ack,
    a_mark_is_echoed_until_cwr_arrives,
    a_mark_on_a_duplicate_is_not_echoed,
    a_mark_on_the_segment_with_cwr_is_echoed,
    linux_acknowledges_a_first_mark_and_cwr_at_once,
);

scripts!(
    rack:
    a_duplicate_of_one_of_two_takes_nothing_back,
    a_duplicate_of_the_probe_says_that_nothing_was_lost,
    a_late_original_is_not_its_retransmission,
    a_lone_segment_has_time_for_a_delayed_ack,
    a_lost_tail_is_probed_after_two_round_trips,
    a_probe_is_new_data_if_there_is_room,
    a_probe_that_repaired_a_loss_reduces_the_window,
    a_probe_whose_original_arrived_costs_nothing,
    a_segment_that_is_acknowledged_in_part_is_out_as_a_whole,
    a_timeout_after_a_probe_reduces_once,
    duplicates_widen_the_window,
    linux_takes_samples_from_sack_and_waits_anew_for_what_went_again,
    rack_begins_the_next_recovery_with_the_ack_that_ends_one,
    rack_finds_a_lost_retransmission_by_a_later_one,
    rack_finds_a_lost_retransmission_by_what_was_sent_later,
    rack_takes_a_reduction_back_when_the_original_came_late,
    rack_takes_all_below_the_highest_arrival_for_lost,
    rack_waits_a_quarter_of_the_round_trip_once_data_came_late,
    rack_waits_no_longer_than_that_for_what_comes_in_time,
    sack_blocks_count_for_segments_as_a_whole,
    what_else_went_again_keeps_a_recovery_open,
    what_the_timer_finds_lost_in_a_recovery_makes_room_for_itself,
    what_went_again_and_had_arrived_was_not_lost,
    where_much_comes_late_sacked_data_counts_for_growth,
);

scripts!(
    timer:
    a_backoff_may_last_until_a_segment_that_went_once,
    a_bounded_timeout_doubles_up_to_a_second,
    a_bounded_timeout_of_a_thin_stream_stays,
    a_duplicate_ack_gives_no_sample,
    a_receiver_that_makes_good_its_reports_is_not_hurried,
    a_second_timeout_of_a_segment_keeps_the_threshold,
    a_thin_stream_backs_off_after_six_expiries,
    a_timeout_in_fast_recovery_ends_it,
    a_timeout_in_fast_recovery_may_keep_the_threshold,
    after_a_timeout_slow_start_goes_back,
    an_ack_in_the_instant_of_the_timer_comes_before_it,
    an_ack_of_what_was_sent_twice_is_no_sample,
    an_ack_that_was_overtaken_gives_no_sample,
    an_echo_of_the_retransmission_leaves_a_timeout_as_it_is,
    an_echo_older_than_the_retransmission_takes_a_timeout_back,
    an_ecn_echo_keeps_the_window_of_a_spurious_timeout,
    duplicates_that_arrived_take_a_timeout_back,
    four_segments_are_no_thin_stream,
    frto_begins_again_with_another_timeout,
    frto_does_not_look_at_a_timeout_in_fast_recovery,
    frto_finds_that_data_was_lost,
    frto_goes_on_with_what_is_lost_if_the_next_ack_says_no_more,
    frto_looks_at_the_first_ack_as_linux_does,
    frto_takes_a_spurious_timeout_back,
    frto_without_new_data_goes_back_to_slow_start,
    frto_without_sack_finds_that_data_was_lost,
    frto_without_sack_takes_a_spurious_timeout_back,
    later_samples_are_smoothed,
    linux_waits_half_a_round_trip_for_a_receiver_that_reneges,
    new_data_acknowledged_restarts_the_timer_and_all_of_it_stops_it,
    sending_does_not_restart_a_running_timer,
    tcp_star_infinity_never_backs_off,
    tcp_star_n_doubles_after_n_expiries,
    tcp_star_stops_doubling_at_seven_expiries_in_a_row,
    the_backoff_ends_with_any_new_ack_where_it_is_asked_to,
    the_backoff_lasts_until_a_sample,
    the_delay_of_an_ack_is_part_of_the_round_trip,
    the_first_sample_sets_srtt_and_half_of_it_the_variation,
    the_timeout_doubles_up_to_sixty_seconds,
    the_timeout_is_at_least_one_second,
    with_timestamps_the_echo_tells_which_transmission_was_acknowledged,
    with_timestamps_the_original_that_was_late_gives_its_whole_delay,
    without_timestamps_one_segment_a_round_trip_is_timed,
);

scripts!(
    freebsd:
    a_lost_retransmission_reduces_again,
    a_pause_leaves_a_threshold_of_three_quarters,
    a_syn_goes_six_times_more,
    a_timeout_has_thirty_milliseconds_below_the_slop,
    a_timeout_that_was_early_is_taken_back,
    a_window_larger_than_the_receive_window_rests,
    a_window_that_is_not_used_grows,
    an_ack_waits_for_forty_milliseconds,
    an_echo_spreads_the_reduction,
    data_that_comes_twice_is_told,
    rack_probes_the_tail,
    rack_waits_for_no_longer_than_four_seconds,
    the_fast_retransmit_is_a_part_of_the_reduction,
    the_slop_is_not_backed_off,
);

scripts!(
    giving_up:
    data_is_given_up_after_so_long,
    data_is_given_up_after_so_many_retries,
    new_data_acknowledged_begins_the_retries_anew,
    without_r2_data_is_sent_for_ever,
);

scripts!(
    handshake:
    a_backoff_of_syns_may_last_until_a_segment_that_went_once,
    a_lost_syn_may_end_the_first_slow_start,
    a_repeated_syn_ack_is_ignored,
    a_syn_is_sent_again_and_given_up,
    after_a_lost_syn_the_window_is_one_segment_and_the_timeout_three_seconds,
    an_ack_without_syn_opens_nothing,
    data_follows_the_syn_ack,
    every_syn_is_answered,
    freebsd_sends_five_syns_before_it_backs_off,
    linux_sends_five_syns_before_it_backs_off,
    tcp_star_infinity_never_backs_off_for_a_syn,
    tcp_star_n_holds_for_syns,
    the_syn_ack_tells_the_first_receive_window,
    the_timeout_after_a_lost_syn_is_a_choice,
);

scripts!(
    windows:
    a_closed_window_is_probed_after_the_timeout_and_ever_less_often,
    a_probe_that_is_accepted_by_a_closed_window_is_followed_by_the_next,
    a_probe_that_is_accepted_counts,
    a_shorter_pause_changes_nothing,
    a_window_smaller_than_a_segment_is_used_after_a_while,
    a_window_that_did_not_limit_does_not_grow,
    a_window_that_shrank_stops_new_data_and_not_the_retransmissions,
    a_window_that_shrank_to_nothing_is_probed_by_retransmissions,
    a_window_update_lets_more_go,
    an_ack_for_many_segments_counts_for_two,
    an_update_before_the_first_probe_makes_it_needless,
    answers_to_probes_are_no_duplicates,
    at_the_first_byte_linuxs_probe_is_that,
    congestion_avoidance_adds_a_segment_for_each_window,
    linux_ends_a_burst_of_several_segments_with_push,
    linux_grows_in_slow_start_while_less_than_twice_the_most_outstanding,
    linux_halves_the_window_for_each_timeout_of_idleness,
    linux_probes_a_closed_window_by_what_is_before_it,
    linux_remembers_for_a_window_of_data_that_the_window_was_full,
    no_more_than_the_receive_window_is_outstanding,
    slow_start_ends_at_the_threshold,
    the_last_byte_may_be_a_probe,
    the_last_segment_may_be_short,
    the_window_restarts_after_a_timeouts_worth_of_idleness,
);

scripts!(
    receiver:
    a_delayed_ack_echoes_its_earliest_segment,
    a_delayed_ack_waits_for_its_timer,
    a_duplicate_behind_a_hole_is_told_before_the_block_that_has_it,
    a_duplicate_is_acknowledged_at_once,
    a_duplicate_is_told_in_a_first_block,
    a_gap_echoes_the_last_segment_that_advanced,
    a_gap_is_acknowledged_at_once,
    a_gap_is_acknowledged_segment_by_segment_until_it_is_filled,
    an_ack_leaves_within_half_a_second,
    an_older_timestamp_is_not_echoed,
    every_second_segment_is_acknowledged,
    later_segments_do_not_put_a_delayed_ack_off,
    linux_acknowledges_the_end_of_a_burst_at_once,
    linux_acknowledges_the_first_segments_at_once,
    linux_delays_by_forty_milliseconds,
    linux_delays_by_forty_milliseconds_and_a_tick,
    only_the_part_that_arrived_before_is_told,
    rfc_2018_case_1_nothing_is_missing_below,
    rfc_2018_case_2_one_block_grows,
    rfc_2018_case_3_the_most_recent_block_comes_first,
    the_filling_of_a_gap_is_acknowledged_at_once,
    the_receive_window_is_told,
    three_blocks_fit_beside_timestamps,
    what_fills_a_gap_is_echoed,
    what_overlaps_is_delivered_once,
    without_sack_no_blocks_are_told,
);

scripts!(
    side_by_side:
    newreno,
    reno,
    sack,
    tahoe,
);

scripts!(
    rtt:
    an_ack_of_one_segment_may_be_ignored,
    an_ack_that_covers_anything_sent_again_gives_no_sample,
    an_ack_that_was_overtaken_is_no_sample,
    delay_aimd_ignores_acks_that_were_held_back,
    delay_aimd_sees_each_ack_where_none_is_held_back,
    lone_acks_may_be_ignored_with_timestamps_too,
    one_sample_a_window,
    sack_gives_a_sample_while_a_hole_is_open,
    the_handshake_is_the_first_that_the_controller_sees,
    the_newest_segment_gives_the_round_trip_alone,
    the_oldest_segment_gives_the_time_that_its_ack_waited,
    the_own_clock_may_be_coarse,
    the_syn_is_a_sample_unless_it_went_twice,
    what_sets_the_timer_is_what_is_seen_unless_told_otherwise,
    what_was_sacked_before_gives_no_sample_when_it_is_acknowledged,
    what_was_sent_again_gives_no_sample,
    where_each_segment_is_acknowledged_an_ack_of_one_counts,
    without_sack_each_segment_may_be_noted,
    without_sacks_the_newest_segment_is_seen,
);

scripts!(
    below_one:
    a_segment_goes_a_round_trip_over_the_window_after_the_last,
    an_ack_counts_before_the_next_segment_goes,
    an_expiry_of_the_timer_waits_for_nothing,
    segments_further_apart_than_the_timeout_are_not_idle,
    what_the_application_has_not_written_does_not_raise_the_window,
);

scripts!(
    cheats:
    a_constant_is_subtracted_from_what_is_echoed,
    a_divided_ack_leaves_a_delayed_one_its_time,
    acks_run_ahead_of_what_arrives,
    an_ack_has_no_more_pieces_than_bytes,
    an_ack_is_divided,
    half_of_the_queueing_delay_is_hidden,
    no_echo_is_before_the_beginning,
    queueing_delay_is_hidden,
    what_was_lost_is_concealed,
    what_was_sent_again_is_acknowledged_as_it_is,
);

scripts!(
    signed:
    an_echo_that_was_never_sent_gives_none,
    an_echo_that_was_never_sent_may_reduce_the_window,
    an_echo_that_was_sent_gives_a_sample,
);

scripts!(
    tso:
    a_chunk_is_at_least_a_segment,
    a_chunk_waits_until_it_is_full,
    a_loss_is_repaired_without_waiting,
    a_third_of_the_window_is_full_enough,
    chunks_are_paced_by_the_rate,
    the_last_data_waits_for_nothing,
    the_wait_may_be_bounded,
    unpaced_chunks_wait_while_acks_are_near,
    what_waits_for_its_chunk_uses_the_window,
    with_nothing_in_flight_there_is_nothing_to_wait_for,
);
