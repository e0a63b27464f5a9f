//! Discretised streams over Kafka: ranges, commits to a group, rates, and what a crash leaves.

use kafka_tests::{Kafka, Record};
use millstream_checkpoint::faulty::{Counted, FaultyFiles, Moment};
use millstream_common::{DurableFiles, ManualClock, MemoryFiles, Options};
use millstream_dstream::{DStream, DirectOptions, KafkaOffsetRange, Stepper, StreamingContext};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One context runs at a time in a process; so does one story.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A batch as its output saw it: its second, its values sorted, its ranges.
type Seen = Arc<Mutex<Vec<(i64, Vec<String>, Vec<KafkaOffsetRange>)>>>;

struct World {
    options: Options,
    clock: Arc<ManualClock>,
    settings: Vec<(&'static str, &'static str)>,
}

impl World {
    fn of(kafka: &Kafka, topic: &str, options: &[(&str, &str)]) -> Self {
        let sound = Options::new().with("kafka.bootstrap.servers", kafka.bootstrap()).with("subscribe", topic);
        let sound = sound.with("startingOffsets", "earliest").with("kafka.default.api.timeout.ms", "20000");
        let options = options.iter().fold(sound, |all, (name, value)| all.with(*name, *value));
        Self { options, clock: Arc::new(ManualClock::at(0)), settings: Vec::new() }
    }

    /// A context of one-second batches and its direct stream; with a checkpoint it goes on with what is there.
    fn context(&self, files: Option<Arc<dyn DurableFiles>>) -> (StreamingContext, DStream<millstream_dstream::Record>) {
        let clock = Arc::clone(&self.clock) as _;
        let mut context = StreamingContext::with_clock(Duration::from_secs(1), clock).unwrap();
        context.set("spark.default.parallelism", "2").unwrap();
        self.settings.iter().for_each(|(name, value)| context.set(name, value).unwrap());
        if let Some(files) = files {
            context.checkpoint_in(files).unwrap();
            context = context.resuming().unwrap();
        }
        let records = context.direct_stream("kafka", DirectOptions::new(self.options.clone())).unwrap();
        (context, records)
    }

    fn tick(&self) {
        self.clock.advance(Duration::from_secs(1));
    }
}

fn value(record: &millstream_dstream::Record) -> String {
    String::from_utf8(record.row().get_binary("value").unwrap().unwrap_or_default().to_vec()).unwrap()
}

/// Sees each batch that has ranges.
fn see(records: &DStream<millstream_dstream::Record>) -> Seen {
    let seen = Seen::default();
    let theirs = Arc::clone(&seen);
    let seeing = records.foreach_rdd(move |rdd, time| {
        let mut values: Vec<String> = rdd.collect()?.iter().map(value).collect();
        values.sort();
        locked(&theirs).push((time.millis() / 1000, values, rdd.kafka_offset_ranges()));
        Ok(())
    });
    seeing.unwrap();
    seen
}

fn range(topic: &str, partition: i32, from_offset: i64, until_offset: i64) -> KafkaOffsetRange {
    KafkaOffsetRange { topic: topic.to_owned(), partition, from_offset, until_offset }
}

fn records(partition: i32, values: &[&str]) -> Vec<Record> {
    values.iter().map(|value| Record { partition: Some(partition), ..Record::of(value) }).collect()
}

#[test]
fn a_batch_shows_its_ranges_and_a_restart_goes_on_behind_them() {
    let (_alone, kafka) = (alone(), Kafka::shared());
    let topic = kafka.topic("ranges", 2);
    kafka.produce(&topic, &records(0, &["a", "b"])).unwrap();
    let (world, files) = (World::of(kafka, &topic, &[]), Arc::new(MemoryFiles::default()));
    let begin = |seen: &mut Seen| {
        let (context, stream) = world.context(Some(Arc::clone(&files) as _));
        *seen = see(&stream);
        context.start_stepwise().unwrap()
    };
    let mut seen = Seen::default();
    let stepper = begin(&mut seen);
    world.tick();
    stepper.run_due().unwrap();
    assert_eq!(
        *locked(&seen),
        [(1, vec!["a".into(), "b".into()], vec![range(&topic, 0, 0, 2), range(&topic, 1, 0, 0)])]
    );
    drop(stepper);

    kafka.produce(&topic, &records(1, &["c"])).unwrap();
    kafka.produce(&topic, &records(0, &["d"])).unwrap();
    world.tick();
    let stepper = begin(&mut seen);
    stepper.run_due().unwrap();
    let ranges = vec![range(&topic, 0, 2, 3), range(&topic, 1, 0, 1)];
    assert_eq!(ranges.iter().map(KafkaOffsetRange::count).sum::<i64>(), 2);
    assert_eq!(*locked(&seen), [(2, vec!["c".into(), "d".into()], ranges)]);
    // A partition that comes later is read from its start.
    kafka.add_partitions(&topic, 3).unwrap();
    kafka.produce(&topic, &records(2, &["e"])).unwrap();
    world.tick();
    stepper.run_due().unwrap();
    let (_, values, ranges) = locked(&seen)[1].clone();
    assert_eq!((values, &ranges[2]), (vec!["e".to_owned()], &range(&topic, 2, 0, 1)));
    drop(stepper);
}

#[test]
fn offsets_are_committed_to_the_group_when_the_program_says_so() {
    let (_alone, kafka) = (alone(), Kafka::shared());
    let topic = kafka.topic("commits", 2);
    let group = format!("group-of-{topic}");
    kafka.produce(&topic, &records(0, &["a", "b", "c"])).unwrap();
    let world = World::of(kafka, &topic, &[("kafka.group.id", &group)]);
    let (context, stream) = world.context(None);
    let seen = see(&stream);
    let (commits, told) = (stream.can_commit_offsets().unwrap(), Arc::new(AtomicU64::new(0)));
    let theirs = Arc::clone(&told);
    let committing = stream.foreach_rdd(move |rdd, _| {
        let told = Arc::clone(&theirs);
        commits.commit_async_then(&rdd.kafka_offset_ranges(), move |outcome| {
            outcome.unwrap();
            told.fetch_add(1, Ordering::SeqCst);
        })?;
        Ok(())
    });
    committing.unwrap();
    assert!(stream.map(|record| value(&record)).can_commit_offsets().is_err(), "only of the stream itself");
    let stepper = context.start_stepwise().unwrap();
    world.tick();
    stepper.run_due().unwrap();
    kafka.produce(&topic, &records(1, &["d"])).unwrap();
    world.tick();
    stepper.run_due().unwrap();
    // The first commit may have to wait for the topic in which brokers keep offsets.
    let begin = Instant::now();
    while told.load(Ordering::SeqCst) == 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no commit is answered");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The end waits for what the last batch asked for.
    drop(stepper);
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert_eq!(committed(kafka, &group, &topic), [Some(3), Some(1)]);
    assert_eq!(locked(&seen).len(), 2);

    // A program without a checkpoint may begin where the group is.
    kafka.produce(&topic, &records(0, &["e"])).unwrap();
    let world = World::of(kafka, &topic, &[("kafka.group.id", &group), ("startingOffsets", "committed")]);
    let (context, stream) = world.context(None);
    let seen = see(&stream);
    let stepper = context.start_stepwise().unwrap();
    world.tick();
    stepper.run_due().unwrap();
    drop(stepper);
    assert_eq!(*locked(&seen), [(1, vec!["e".into()], vec![range(&topic, 0, 3, 4), range(&topic, 1, 1, 1)])]);

    // Without the name of a group the program is told at the next batch.
    let world = World::of(kafka, &topic, &[]);
    let (context, stream) = world.context(None);
    let commits = stream.can_commit_offsets().unwrap();
    stream.foreach_rdd(move |rdd, _| Ok(commits.commit_async(&rdd.kafka_offset_ranges())?)).unwrap();
    let stepper = context.start_stepwise().unwrap();
    world.tick();
    stepper.run_due().unwrap();
    world.tick();
    let error = millstream_common::describe_chain(&*stepper.run_due().unwrap_err());
    assert!(error.contains("kafka.group.id"), "{error}");
}

fn committed(kafka: &Kafka, group: &str, topic: &str) -> Vec<Option<i64>> {
    use rdkafka::consumer::{BaseConsumer, Consumer};
    let consumer: BaseConsumer = kafka.client().set("group.id", group).create().unwrap();
    let mut list = rdkafka::TopicPartitionList::new();
    list.add_partition_range(topic, 0, 1);
    let list = consumer.committed_offsets(list, Duration::from_secs(20)).unwrap();
    let offset = |partition| match list.find_partition(topic, partition).unwrap().offset() {
        rdkafka::Offset::Offset(offset) => Some(offset),
        _ => None,
    };
    [0, 1].map(offset).into()
}

/// How many records of each partition the batches have.
fn sizes(seen: &Seen) -> Vec<Vec<i64>> {
    let counts = |ranges: &Vec<KafkaOffsetRange>| ranges.iter().map(KafkaOffsetRange::count).collect();
    locked(seen).iter().map(|(_, _, ranges)| counts(ranges)).collect()
}

#[test]
fn each_partition_gives_a_batch_no_more_than_its_rate() {
    let (_alone, kafka) = (alone(), Kafka::shared());
    let topic = kafka.topic("rates", 3);
    kafka.produce(&topic, &records(0, &["v"; 12])).unwrap();
    kafka.produce(&topic, &records(1, &["v"; 4])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    world.settings.push(("spark.streaming.kafka.maxRatePerPartition", "5"));
    let (context, stream) = world.context(None);
    let seen = see(&stream);
    let stepper = context.start_stepwise().unwrap();
    world.clock.advance(Duration::from_secs(4));
    stepper.run_due().unwrap();
    assert_eq!(sizes(&seen), [[5, 4, 0], [5, 0, 0], [2, 0, 0], [0, 0, 0]]);
    drop(stepper);
}

#[test]
fn backpressure_gives_a_batch_what_the_last_ones_could_work_off() {
    let (_alone, kafka) = (alone(), Kafka::shared());
    let topic = kafka.topic("pressure", 1);
    kafka.produce(&topic, &records(0, &["v"; 1000])).unwrap();
    let mut world = World::of(kafka, &topic, &[]);
    world.settings = vec![
        ("spark.streaming.backpressure.enabled", "true"),
        ("spark.streaming.backpressure.initialRate", "10"),
        ("spark.streaming.backpressure.pid.integral", "0"),
        ("spark.streaming.backpressure.pid.minRate", "1"),
    ];
    let (context, stream) = world.context(None);
    // How long the work of each batch takes, in milliseconds.
    let (clock, work) = (Arc::clone(&world.clock), Arc::new(AtomicU64::new(200)));
    let theirs = Arc::clone(&work);
    let working = stream.foreach_rdd(move |_, _| {
        clock.advance(Duration::from_millis(theirs.load(Ordering::SeqCst)));
        Ok(())
    });
    working.unwrap();
    let seen = see(&stream);
    let stepper = context.start_stepwise().unwrap();
    let step = |work_ms: u64, until_ms: u64| {
        work.store(work_ms, Ordering::SeqCst);
        use millstream_common::Clock;
        let now = u64::try_from(world.clock.now_ms()).unwrap();
        world.clock.advance(Duration::from_millis(until_ms - now));
        stepper.run_due().unwrap();
    };
    step(200, 1_000);
    step(200, 2_000);
    // 10 records in 200 ms are 50 per second.
    step(900, 3_000);
    assert_eq!(sizes(&seen), [[10], [10], [50]]);
    // 50 records in 900 ms are 55 per second; 55 in 550 ms are 100.
    step(550, 4_000);
    step(990, 5_000);
    assert_eq!(sizes(&seen)[3..], [[55], [100]]);
    drop(stepper);
}

/// Every value that outputs gave, by second; the same second must give the same again.
type Given = Arc<Mutex<BTreeMap<i64, Vec<String>>>>;

fn counting(world: &World, files: Arc<dyn DurableFiles>, given: &Given) -> Option<Stepper> {
    let (context, stream) = world.context(Some(files));
    let given = Arc::clone(given);
    let counts = stream.map(|record| (value(&record), 1_i64));
    let counts = counts
        .update_state_by_key(|new: Vec<i64>, state: Option<i64>| Some(new.iter().sum::<i64>() + state.unwrap_or(0)));
    let giving = counts.foreach_rdd(move |rdd, time| {
        let mut rows: Vec<String> = rdd.collect()?.iter().map(|(word, count)| format!("{word}={count}")).collect();
        rows.sort();
        let before = locked(&given).insert(time.millis() / 1000, rows.clone());
        assert!(before.is_none() || before.as_ref() == Some(&rows), "{before:?}, then {rows:?} at {time}");
        Ok(())
    });
    giving.unwrap();
    context.start_stepwise().ok()
}

#[test]
fn a_crash_at_any_durable_write_counts_every_record_once() {
    let (_alone, kafka) = (alone(), Kafka::shared());
    let topic = kafka.topic("crashes", 2);
    kafka.produce(&topic, &records(0, &["a", "b", "a", "c"])).unwrap();
    kafka.produce(&topic, &records(1, &["a", "b"])).unwrap();
    let mut points = 0;
    // Each write of a life has its turn, now before and now after it.
    for at in 1..100 {
        let mut world = World::of(kafka, &topic, &[]);
        world.settings.push(("spark.streaming.kafka.maxRatePerPartition", "2"));
        let (files, given) = (Arc::new(MemoryFiles::default()), Given::default());
        let moment = if at % 2 == 0 { Moment::Before } else { Moment::After };
        let faulty = Arc::new(FaultyFiles::new(Arc::clone(&files) as _, Counted::ALL).crash_at(at, moment));
        let mut stepper = counting(&world, Arc::clone(&faulty) as _, &given);
        for second in 1..=3 {
            world.clock.advance(Duration::from_secs(1));
            if stepper.as_ref().is_none_or(|stepper| stepper.run_due().is_err()) {
                drop(stepper.take());
                // Nobody gives the lease of a dead process back; its time passes.
                files.delete("lease").unwrap();
                if files.list("offsets").unwrap().is_empty() {
                    // Its first batch was never defined: it begins when it is started again.
                    world.clock = Arc::new(ManualClock::at(second * 1000 - 1000));
                }
                stepper = counting(&world, Arc::clone(&files) as _, &given);
                world.clock.advance(Duration::from_millis(
                    u64::try_from(second * 1000 - millstream_common::Clock::now_ms(&*world.clock)).unwrap(),
                ));
                stepper.as_ref().unwrap().run_due().unwrap();
            }
        }
        drop(stepper);
        let last = locked(&given).last_key_value().map(|(_, rows)| rows.clone()).unwrap();
        assert_eq!(last, ["a=3", "b=2", "c=1"], "crash at write {at}, {moment:?}: {given:?}");
        if !faulty.crashed() {
            break;
        }
        points += 1;
    }
    assert!(points >= 9, "only {points} points of a crash");
}

#[test]
fn a_context_whose_broker_is_away_ends_when_it_is_told_to() {
    let _alone = alone();
    let Some(kafka) = Kafka::mortal() else { return };
    let topic = kafka.topic("away", 1);
    kafka.produce(&topic, &records(0, &["a"])).unwrap();
    let world = World::of(&kafka, &topic, &[("kafka.default.api.timeout.ms", "60000")]);
    let context = StreamingContext::new(Duration::from_millis(100)).unwrap();
    let stream = context.direct_stream("kafka", DirectOptions::new(world.options.clone())).unwrap();
    let seen = see(&stream);
    context.start().unwrap();
    let begin = Instant::now();
    while locked(&seen).iter().all(|(_, values, _)| values.is_empty()) {
        assert!(begin.elapsed() < Duration::from_secs(30), "no batch has the record");
        std::thread::sleep(Duration::from_millis(20));
    }
    kafka.kill(1).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    context.stop(false);
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    context.await_termination().unwrap();
}
