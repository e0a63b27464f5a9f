//! What output operations leave behind.

use crate::harness::{alone, context, locked, seconds};
use millstream_dstream::{Rdd, RddQueue};
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        locked(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_first_rows_are_printed_under_the_time_of_the_batch() {
    let _alone = alone();
    let (context, clock) = context();
    let queue = RddQueue::<&'static str>::new();
    let words = context.queue_stream(&queue).unwrap();
    let page = Page::default();
    words.map(|word| (word, 1)).print_to(2, page.clone()).unwrap();
    let stepper = context.start_stepwise().unwrap();
    queue.push(vec!["hello", "world", "again"]);
    clock.advance(seconds(2));
    stepper.run_due().unwrap();
    let rule = "-".repeat(43);
    let wanted =
        format!("{rule}\nTime: 1000 ms\n{rule}\n(hello,1)\n(world,1)\n...\n\n{rule}\nTime: 2000 ms\n{rule}\n\n");
    assert_eq!(String::from_utf8(locked(&page.0).clone()).unwrap(), wanted);
}

#[test]
fn each_batch_is_a_folder_of_text_files() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (context, clock) = context();
    let queue = RddQueue::<&'static str>::new();
    let words = context.queue_stream(&queue).unwrap();
    words.save_as_text_files(folder.path().join("words").to_str().unwrap(), "txt").unwrap();
    words.count().save_as_text_files(folder.path().join("count").to_str().unwrap(), "").unwrap();
    // What an earlier attempt left.
    let left = folder.path().join("words-1000.txt");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("part-00000"), "half a ro").unwrap();
    std::fs::write(left.join("part-00007"), "of more partitions").unwrap();
    let stepper = context.start_stepwise().unwrap();
    queue.push_rdd(Rdd::from_partitions(vec![vec!["a", "b"], vec!["c"]]));
    clock.advance(seconds(2));
    stepper.run_due().unwrap();
    let names = |folder: &std::path::Path| {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["count-1000", "count-2000", "words-1000.txt", "words-2000.txt"]);
    assert_eq!(names(&left), ["_SUCCESS", "part-00000", "part-00001"]);
    assert_eq!(std::fs::read_to_string(left.join("part-00000")).unwrap(), "a\nb\n");
    assert_eq!(std::fs::read_to_string(left.join("part-00001")).unwrap(), "c\n");
    assert_eq!(names(&folder.path().join("words-2000.txt")), ["_SUCCESS"]);
}

#[test]
fn output_operations_go_in_the_order_of_the_program_and_share_what_they_use() {
    let _alone = alone();
    let (context, clock) = context();
    let queue = RddQueue::new();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let counted = Arc::clone(&calls);
    let shared = context.queue_stream(&queue).unwrap().map(move |n: i32| {
        locked(&counted).push("mapped".to_owned());
        n
    });
    for name in ["first", "second"] {
        let calls = Arc::clone(&calls);
        let seeing = shared.foreach_rdd(move |rows, _| {
            rows.count()?;
            locked(&calls).push(name.to_owned());
            Ok(())
        });
        seeing.unwrap();
    }
    let stepper = context.start_stepwise().unwrap();
    queue.push(vec![1]);
    clock.advance(seconds(1));
    stepper.run_due().unwrap();
    assert_eq!(*locked(&calls), ["mapped", "first", "second"]);
}
