use super::*;
use std::cell::RefCell;
use std::rc::Rc;

type File = Rc<RefCell<Vec<u8>>>;

/// Answers as a web server does.
fn serve(file: &File, request: &Request) -> Response {
    let file = file.borrow();
    let header =
        |wanted: &str| request.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    assert_eq!(header("authorization"), Some("Bearer secret"));
    if request.method == "HEAD" {
        let length = ("Content-Length".to_owned(), file.len().to_string());
        return Response { status: 200, headers: vec![length], body: vec![] };
    }
    let range = header("range").and_then(|range| range.strip_prefix("bytes=")).unwrap();
    let (from, to) = range.split_once('-').unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    assert!(to - from < 64, "chunks are as small as they were asked for");
    Response { status: 206, headers: vec![], body: file[from..=to].to_vec() }
}

fn tail(text: &str) -> (File, SourceTester<Lines>) {
    let file: File = Rc::new(RefCell::new(text.as_bytes().to_vec()));
    let served = Rc::clone(&file);
    let tester = SourceTester::new().option("url", "http://logs/access.log").option("chunkBytes", 1);
    let tester = tester.option("authorization", "Bearer secret");
    (file, tester.answering(move |request| Ok(serve(&served, request))))
}

fn texts(rows: CallResult<Vec<Line>>) -> Vec<String> {
    rows.unwrap().into_iter().map(|row| format!("{} {}", row.position, row.line)).collect()
}

#[test]
fn lines_come_when_they_are_whole_and_once() {
    let (file, mut tail) = tail("");
    assert!(texts(tail.next_batch()).is_empty());
    file.borrow_mut().extend_from_slice(b"one\ntwo\nthr");
    assert_eq!(texts(tail.next_batch()), ["0 one", "4 two"]);
    assert!(texts(tail.next_batch()).is_empty(), "half a line is none");
    file.borrow_mut().extend_from_slice(b"ee\r\n\nfive\n");
    assert_eq!(texts(tail.next_batch()), ["8 three", "15 ", "16 five"]);
    assert_eq!(tail.offset(), Some("21"));
}

#[test]
fn many_lines_are_read_in_chunks_and_a_limit_counts_lines() {
    let text: String = (0..100).map(|n| format!("line {n} {}\n", "x".repeat(n % 40))).collect();
    let (_, mut all) = tail(&text);
    let whole = texts(all.next_batch());
    assert_eq!(whole.len(), 100);
    assert!(whole[99].ends_with(&format!("line 99 {}", "x".repeat(19))));
    let (_, limited) = tail(&text);
    let mut limited = limited.max_rows(7);
    let mut parts = Vec::new();
    loop {
        let batch = texts(limited.next_batch());
        if batch.is_empty() {
            break;
        }
        assert!(batch.len() <= 7);
        parts.extend(batch);
    }
    assert_eq!(parts, whole);
}

#[test]
fn what_was_available_stays_the_end() {
    let (file, tail) = tail("a\nb\nc\n");
    assert_eq!(tail.latest_offset(0, None), Ok("6".into()));
    file.borrow_mut().extend_from_slice(b"d\n");
    assert_eq!(tail.latest_offset(2, Some("6")), Ok("6".into()));
    let limited = tail.max_rows(1);
    assert_eq!(limited.latest_offset(2, Some("6")), Ok("4".into()));
    assert_eq!(limited.latest_offset(4, Some("6")), Ok("6".into()));
}

#[test]
fn a_file_that_shrinks_is_another_one() {
    let (file, mut tail) = tail("a\nb\n");
    assert_eq!(texts(tail.next_batch()).len(), 2);
    file.borrow_mut().truncate(2);
    let error = tail.next_batch().unwrap_err();
    assert!(matches!(&error, CallError::InvalidInput(text) if text.contains("has 2 bytes, and 4")), "{error:?}");
}

#[test]
fn a_server_that_fails_may_answer_later() {
    let statuses = Rc::new(RefCell::new(vec![200, 404, 503]));
    let tester = SourceTester::<Lines>::new().option("url", "http://logs/access.log");
    let answer =
        move |_: &Request| Ok(Response { status: statuses.borrow_mut().pop().unwrap(), ..Response::default() });
    let mut tail = tester.answering(answer);
    assert!(matches!(tail.next_batch(), Err(CallError::Unavailable(_))));
    assert!(matches!(tail.next_batch(), Err(CallError::Internal(_))));
    assert!(matches!(tail.next_batch(), Err(CallError::Internal(text)) if text.contains("how large")));
    assert!(matches!(SourceTester::<Lines>::new().next_batch(), Err(CallError::InvalidInput(_))));
}
