use super::*;
use crate::{OutputMode, Session, Trigger};
use millstream_common::Fault;
use millstream_source::SourceRegistry;
use millstream_source::connectors::memory::MemoryStreams;

/// Writes down what it hears.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    /// Waits until a line begins so.
    fn read_until(&self, wanted: &str) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let lines = self.0.lock().unwrap().clone();
            if lines.iter().any(|line| line.starts_with(wanted)) {
                return lines;
            }
            assert!(Instant::now() < deadline, "`{wanted}` was never heard: {lines:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl StreamingQueryListener for Diary {
    fn on_query_started(&self, event: &QueryStartedEvent) {
        self.write(format!("started {}", event.name.as_deref().unwrap_or("?")));
    }

    fn on_query_progress(&self, event: &QueryProgressEvent) {
        self.write(format!("batch {}, {} rows", event.progress.batch_id, event.progress.num_input_rows));
    }

    fn on_query_idle(&self, event: &QueryIdleEvent) {
        self.write(format!("idle {}", event.timestamp.len()));
    }

    fn on_query_terminated(&self, event: &QueryTerminatedEvent) {
        self.write(format!("terminated {:?} {:?}", event.fault, event.exception));
    }
}

/// Panics at whatever it hears.
struct Nervous;

impl StreamingQueryListener for Nervous {
    fn on_query_progress(&self, _event: &QueryProgressEvent) {
        panic!("so many rows");
    }
}

fn numbers(values: &[i64]) -> arrow::array::RecordBatch {
    let schema = arrow::datatypes::Schema::new(millstream_plan::ddl::parse_ddl("n bigint").unwrap());
    let column = arrow::array::Int64Array::from(values.to_vec());
    arrow::array::RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).unwrap()
}

fn session() -> (Session, MemoryStreams) {
    let streams = MemoryStreams::new();
    let mut sources = SourceRegistry::with_builtins();
    sources.register("memory", Arc::new(streams.clone()));
    let session = Session::builder().sources(sources).build();
    session.set("spark.sql.streaming.noDataProgressEventInterval", "30").unwrap();
    (session, streams)
}

fn start(session: &Session, sql: &str, name: &str) -> Result<StreamingQuery, RuntimeError> {
    let frame = session.read_stream().name("t").format("memory").load()?;
    frame.create_or_replace_temp_view("t")?;
    let writer = session.sql(sql)?.write_stream().output_mode(OutputMode::Append).trigger(Trigger::Default);
    writer.format("noop").query_name(name).start()
}

#[test]
fn listeners_hear_of_start_progress_idleness_and_end() {
    let (session, streams) = session();
    let stream = streams.create("t", numbers(&[]).schema());
    let (diary, manager) = (Arc::new(Diary::default()), session.streams());
    manager.add_listener(Arc::new(Nervous)).unwrap();
    let id = manager.add_listener(Arc::clone(&diary) as _).unwrap();
    stream.add_data(numbers(&[1, 2])).unwrap();
    let query = start(&session, "SELECT n FROM t", "listened").unwrap();
    assert_eq!(diary.0.lock().unwrap().first().map(String::as_str), Some("started listened"));
    assert_eq!(manager.active().iter().map(StreamingQuery::id).collect::<Vec<_>>(), [query.id()]);
    assert!(manager.get(query.id()).is_some());
    diary.read_until("batch 0, 2 rows");
    diary.read_until("idle 24");
    query.stop().unwrap();
    diary.read_until("terminated None None");
    assert!(manager.active().is_empty() && manager.get(query.id()).is_none());
    assert!(manager.remove_listener(id) && !manager.remove_listener(id));
    assert_eq!(manager.list_listeners().len(), 1);
}

#[test]
fn one_waits_for_any_query_and_hears_why_it_failed() {
    let (session, streams) = session();
    let stream = streams.create("t", numbers(&[]).schema());
    let (diary, manager) = (Arc::new(Diary::default()), session.streams());
    manager.add_listener(Arc::clone(&diary) as _).unwrap();
    let good = start(&session, "SELECT n FROM t", "good").unwrap();
    let error = start(&session, "SELECT n FROM t", "good").err().expect("the name is taken");
    assert!(error.to_string().contains("`good` is running already"), "{error}");
    assert!(!manager.await_any_termination_for(Duration::from_millis(20)).unwrap());
    let bad = start(&session, "SELECT 1 / n AS q FROM t", "bad").unwrap();
    stream.add_data(numbers(&[0])).unwrap();
    let error = manager.await_any_termination().unwrap_err();
    assert_eq!(error.fault(), Fault::Data);
    let lines = diary.read_until("terminated Some(Data)");
    assert!(lines.iter().any(|line| line.contains("DIVIDE_BY_ZERO") || line.contains("division")), "{lines:?}");
    assert_eq!(manager.active().len(), 1);
    manager.reset_terminated();
    assert!(!manager.await_any_termination_for(Duration::from_millis(20)).unwrap());
    good.stop().unwrap();
    manager.await_any_termination().unwrap();
    assert!(bad.exception().is_some());
}
