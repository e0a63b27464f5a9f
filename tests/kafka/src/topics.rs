//! Topics: made, changed, and removed.

use crate::Kafka;
use anyhow::{Context, Result, bail, ensure};
use futures::executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

impl Kafka {
    /// Makes a topic with a name that no other test has, and answers the name.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn topic(&self, like: &str, partitions: usize) -> String {
        let name = format!("{like}-{}", uuid::Uuid::new_v4().simple());
        self.create_topic(&name, partitions, &[]).unwrap_or_else(|error| panic!("no topic `{name}`: {error:#}"));
        name
    }

    /// Makes a topic with this configuration, and waits until all its partitions have a leader.
    ///
    /// # Errors
    /// When it is there, or cannot be made.
    pub fn create_topic(&self, name: &str, partitions: usize, config: &[(&str, &str)]) -> Result<()> {
        let copies = i32::try_from(self.brokers().clamp(1, 3))?;
        let topic = NewTopic::new(name, i32::try_from(partitions)?, TopicReplication::Fixed(copies));
        let topic = config.iter().fold(topic, |topic, (key, value)| topic.set(key, value));
        let created = block_on(self.admin()?.create_topics([&topic], &options()))?;
        for result in created {
            result.map_err(|(name, code)| anyhow::anyhow!("topic `{name}` cannot be made: {code}"))?;
        }
        self.wait_for_partitions(name, partitions)
    }

    /// Removes a topic with all records, and waits until it is gone.
    ///
    /// # Errors
    /// When it is not there.
    pub fn delete_topic(&self, name: &str) -> Result<()> {
        for result in block_on(self.admin()?.delete_topics(&[name], &options()))? {
            result.map_err(|(name, code)| anyhow::anyhow!("topic `{name}` cannot be removed: {code}"))?;
        }
        wait(&format!("the end of topic `{name}`"), || {
            let metadata = self.consumer()?.fetch_metadata(None, Duration::from_secs(5))?;
            Ok(metadata.topics().iter().all(|topic| topic.name() != name))
        })
    }

    /// Gives a topic more partitions.
    ///
    /// # Errors
    /// When it has as many.
    pub fn add_partitions(&self, name: &str, partitions: usize) -> Result<()> {
        let wanted = NewPartitions::new(name, partitions);
        for result in block_on(self.admin()?.create_partitions([&wanted], &options()))? {
            result.map_err(|(name, code)| anyhow::anyhow!("topic `{name}` cannot have {partitions}: {code}"))?;
        }
        self.wait_for_partitions(name, partitions)
    }

    /// Sets the configuration of a topic; what is not named has its default again.
    ///
    /// # Errors
    /// When a name or value is unknown.
    pub fn configure_topic(&self, name: &str, config: &[(&str, &str)]) -> Result<()> {
        let topic = AlterConfig::new(ResourceSpecifier::Topic(name));
        let topic = config.iter().fold(topic, |topic, (key, value)| topic.set(key, value));
        for result in block_on(self.admin()?.alter_configs([&topic], &options()))? {
            result.map_err(|(_, code)| anyhow::anyhow!("topic `{name}` cannot be configured: {code}"))?;
        }
        Ok(())
    }

    /// Removes the records of a partition before an offset, as retention does.
    ///
    /// # Errors
    /// When there is no such offset.
    pub fn delete_records_before(&self, topic: &str, partition: i32, offset: i64) -> Result<()> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset))?;
        let result = block_on(self.admin()?.delete_records(&list, &options()))?;
        result.elements().iter().try_for_each(|element| Ok(element.error()?))
    }

    /// The first offset and the one after the last, of a partition.
    ///
    /// # Errors
    /// When the partition is not there.
    pub fn offsets(&self, topic: &str, partition: i32) -> Result<(i64, i64)> {
        Ok(self.consumer()?.fetch_watermarks(topic, partition, Duration::from_secs(20))?)
    }

    /// How many partitions a topic has.
    ///
    /// # Errors
    /// When it is not there.
    pub fn partitions(&self, name: &str) -> Result<usize> {
        let metadata = self.consumer()?.fetch_metadata(Some(name), Duration::from_secs(20))?;
        let topic = metadata.topics().first().context("no topic in the answer")?;
        if let Some(error) = topic.error() {
            bail!("topic `{name}` is not there: {error:?}");
        }
        Ok(topic.partitions().len())
    }

    fn wait_for_partitions(&self, name: &str, partitions: usize) -> Result<()> {
        let consumer = self.consumer()?;
        wait(&format!("{partitions} partitions of topic `{name}`"), || {
            let metadata = consumer.fetch_metadata(Some(name), Duration::from_secs(10))?;
            let topic = metadata.topics().first().context("no topic in the answer")?;
            let led = topic.partitions().iter().filter(|p| p.leader() >= 0 && p.error().is_none()).count();
            Ok(topic.error().is_none() && led == partitions)
        })
    }

    fn consumer(&self) -> Result<BaseConsumer> {
        Ok(self.client().create()?)
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>> {
        Ok(self.client().create()?)
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(Duration::from_secs(30))).operation_timeout(Some(Duration::from_secs(30)))
}

pub(crate) fn wait(what: &str, mut is: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    loop {
        let found = is();
        if matches!(found, Ok(true)) {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "waited in vain for {what}: {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
