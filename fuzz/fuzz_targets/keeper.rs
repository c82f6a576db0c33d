//! Fuzz target of the messages between a link's unprivileged processes and the privileged one: any
//! bytes decode to a message that encodes to the same bytes, or to none.

#![cfg_attr(not(test), no_main)]

use cwnd_router::linux::privileged::{Answer, Event, Order, Request};

pub fn run(data: &[u8]) {
    let Some((&kind, data)) = data.split_first() else { return };
    match kind % 4 {
        0 => {
            let Ok(request) = Request::of_bytes(data) else { return };
            assert_eq!(request.to_bytes(), data);
            if let Request::Start(start) = &request {
                assert!((3..10).contains(&start.descriptors()), "{start:?}");
                assert!(start.limits.len() <= 16 && start.names.len() <= 8, "{start:?}");
            }
        }
        1 => {
            let Ok(answer) = Answer::of_bytes(data) else { return };
            assert_eq!(answer.to_bytes(), data);
            // An error can always be formatted.
            if let Err(error) = answer.checked() {
                assert!(!format!("{error:?}").is_empty());
            }
        }
        2 => assert!(Event::of_bytes(data).is_none_or(|event| event.to_bytes() == data)),
        _ => assert!(Order::of_bytes(data).is_none_or(|order| order.to_bytes() == data)),
    }
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
