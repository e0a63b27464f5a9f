//! Rows as requests, sent until they are answered well.

use crate::options::Options;
use millstream_sdk::sink::prelude::*;
use std::ops::ControlFlow;

/// Requests that are sent together.
const TOGETHER: usize = 64;
/// Characters of a body that are told.
const TOLD: usize = 200;

/// Sends all rows of a partition.
pub(crate) fn send(options: &Options, target: &Target, mut rows: Vec<String>) -> CallResult<()> {
    // Whatever their order was, the same rows are in the same requests, byte by byte, when they come again.
    rows.sort_unstable();
    let all: Vec<Request> = (0..)
        .zip(rows.chunks(options.rows_per_request))
        .map(|(number, rows)| request(options, target, number, rows))
        .collect();
    all.chunks(TOGETHER).try_for_each(|together| send_together(options, together.to_vec()))
}

fn request(options: &Options, target: &Target, number: usize, rows: &[String]) -> Request {
    let Target { query_id, partition, batch, .. } = target;
    let mut request = Request::new(&options.method, &options.url)
        .header("Content-Type", options.format.content_type())
        .header("Idempotency-Key", &format!("{query_id}-{partition}-{batch}-{number}"))
        .header("Millstream-Batch", &batch.to_string());
    request.headers.extend(options.headers.iter().cloned());
    request.body = options.format.body(rows).into_bytes();
    request.timeout_ms = options.timeout_ms;
    request
}

/// Sends requests, and those that fail again.
fn send_together(options: &Options, mut open: Vec<Request>) -> CallResult<()> {
    let mut last = String::new();
    for _ in 0..options.attempts {
        let mut failed = Vec::new();
        for (request, answer) in open.iter().zip(http::send(open.clone())) {
            match judge(answer) {
                ControlFlow::Continue(None) => {}
                ControlFlow::Continue(Some(reason)) => {
                    last = reason;
                    failed.push(request.clone());
                }
                ControlFlow::Break(reason) => return Err(CallError::invalid_input(told(options, &reason))),
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        open = failed;
    }
    let reason = told(options, &last);
    Err(CallError::unavailable(format!("{reason}, after {} attempts", options.attempts)))
}

fn told(options: &Options, reason: &str) -> String {
    format!("{} {}: {reason}", options.method, options.url)
}

/// Whether a request is done, is to be tried again for some reason, or never will be done.
fn judge(answer: Result<Response, http::Failure>) -> ControlFlow<String, Option<String>> {
    match answer {
        Err(http::Failure::Unreachable(reason) | http::Failure::TooLarge(reason)) => {
            ControlFlow::Continue(Some(reason))
        }
        Err(http::Failure::Denied(reason)) => ControlFlow::Break(reason),
        Ok(response) if (200..300).contains(&response.status) => ControlFlow::Continue(None),
        Ok(response) => {
            let text: String = String::from_utf8_lossy(&response.body).chars().take(TOLD).collect();
            let reason = format!("status {} {}", response.status, text.trim()).trim_end().to_owned();
            match response.status {
                408 | 409 | 425 | 429 | 500.. => ControlFlow::Continue(Some(reason)),
                _ => ControlFlow::Break(reason),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Http;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Row)]
    struct Order {
        id: i64,
        item: Option<String>,
    }

    fn orders(ids: impl IntoIterator<Item = i64>) -> Vec<Order> {
        ids.into_iter().map(|id| Order { id, item: (id > 0).then(|| "tea".to_owned()) }).collect()
    }

    fn tester() -> SinkTester<Http> {
        SinkTester::new().option("url", "https://orders.example/rows")
    }

    /// Answers requests one after the other with these statuses, then with 200; tells them.
    fn answering(statuses: &'static [u16]) -> Rc<RefCell<Vec<Request>>> {
        let (seen, mut statuses) = (Rc::new(RefCell::new(Vec::new())), statuses.iter());
        let told = Rc::clone(&seen);
        http::answer_with(move |request| {
            told.borrow_mut().push(request.clone());
            let status = statuses.next().copied().unwrap_or(200);
            match status {
                0 => Err(http::Failure::Unreachable("nobody there".into())),
                status => Ok(Response { status, body: b"so it is".to_vec(), ..Response::default() }),
            }
        });
        seen
    }

    fn bodies(requests: &[Request]) -> Vec<String> {
        requests.iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect()
    }

    #[test]
    fn a_partition_is_one_request_with_a_key_of_its_own() {
        let seen = answering(&[]);
        let tester = tester().partition(2).option("headers", "Authorization: secret\nX-From: here");
        tester.write_as(7, orders([1, 0])).unwrap();
        let requests = seen.borrow();
        assert_eq!(bodies(&requests), ["{\"id\":0,\"item\":null}\n{\"id\":1,\"item\":\"tea\"}\n"]);
        let header = |name| requests[0].header_value(name);
        assert_eq!(header("idempotency-key"), Some("00000000-0000-0000-0000-000000000001-2-7-0"));
        assert_eq!((header("content-type"), header("X-From")), (Some("application/x-ndjson"), Some("here")));
        assert_eq!((&*requests[0].method, &*requests[0].url), ("POST", "https://orders.example/rows"));
    }

    #[test]
    fn a_batch_that_comes_again_in_another_order_is_cut_in_the_same_places() {
        let (one, other) = (answering(&[]), |ids: Vec<i64>| {
            tester().option("rows_per_request", "2").option("format", "array").write_as(1, orders(ids)).unwrap();
        });
        other(vec![3, 1, 2]);
        other(vec![2, 3, 1]);
        let bodies = bodies(&one.borrow());
        assert_eq!(bodies.len(), 4);
        assert_eq!(bodies[..2], bodies[2..]);
        assert_eq!(bodies[1], r#"[{"id":3,"item":"tea"}]"#);
    }

    #[test]
    fn what_may_go_well_later_is_tried_again_with_the_same_key() {
        let seen = answering(&[503, 0]);
        tester().write_as(1, orders([1])).unwrap();
        let requests = seen.borrow();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| *request == requests[0]));
    }

    #[test]
    fn only_what_failed_is_sent_again() {
        let seen = answering(&[200, 429, 200]);
        tester().option("rows_per_request", "1").write_as(1, orders([1, 2, 3])).unwrap();
        let bodies = bodies(&seen.borrow());
        assert_eq!((bodies.len(), &bodies[3]), (4, &bodies[1]));
    }

    #[test]
    fn a_batch_fails_when_it_does_not_go_well_or_never_will() {
        answering(&[500, 500, 500]);
        let error = tester().write_as(1, orders([1])).unwrap_err();
        assert!(
            matches!(&error, CallError::Unavailable(text) if text.contains("status 500 so it is, after 3 attempts"))
        );
        let seen = answering(&[404]);
        let error = tester().write_as(1, orders([1])).unwrap_err();
        assert!(matches!(&error, CallError::InvalidInput(text) if text.contains("status 404")), "{error:?}");
        assert_eq!(seen.borrow().len(), 1);
    }

    #[test]
    fn an_empty_partition_sends_nothing_and_odd_options_are_refused() {
        let seen = answering(&[]);
        tester().write_as(1, orders([])).unwrap();
        assert!(seen.borrow().is_empty());
        for (name, value) in [("format", "xml"), ("attempts", "0"), ("timeout_ms", "soon"), ("headers", "nonsense")] {
            let error = tester().option(name, value).write_as(1, orders([1])).unwrap_err();
            assert!(matches!(&error, CallError::InvalidInput(text) if text.contains(name)), "{error:?}");
        }
    }
}
