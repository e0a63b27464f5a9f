//! Query files as people write them, and as they get them wrong.

use super::*;
use crate::{TableSpec, Trigger};
use millstream_common::{Fault, Hint, OutputMode};
use millstream_plan::Query;
use millstream_wasm::FaultPolicy;
use std::time::Duration;
use tempfile::TempDir;

const MINIMAL: &str = r#"
sql = "SELECT * FROM lines;"
[[source]]
name = "lines"
format = "rate"
[sink]
format = "console"
"#;

struct Files(TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn load(&self, env: &[(&str, &str)], overrides: Overrides) -> Result<LoadedQuery, QueryFileError> {
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let host = Some(self.path("host.toml")).filter(|path| path.exists());
        load(&self.path("query.toml"), host.as_deref(), &env, overrides)
    }
}

fn load_text(text: &str) -> Result<LoadedQuery, QueryFileError> {
    Files::new(&[("query.toml", text)]).load(&[], Overrides::default())
}

/// The error without the folder of the test.
fn refusal(text: &str) -> String {
    let files = Files::new(&[("query.toml", text)]);
    let error = files.load(&[], Overrides::default()).unwrap_err();
    assert_eq!(error.fault(), Fault::Query);
    millstream_common::describe_chain(&error).replace(&format!("{}/", files.0.path().display()), "")
}

fn value<'a>(loaded: &'a LoadedQuery, name: &str) -> &'a Value {
    loaded.values.iter().find(|value| value.name == name).unwrap_or_else(|| panic!("no {name} in {:#?}", loaded.values))
}

#[test]
fn the_least_query_has_defaults_for_the_rest() {
    let loaded = load_text(MINIMAL).unwrap();
    let spec = &loaded.spec;
    assert_eq!((spec.name.as_deref(), spec.mode, spec.trigger), (None, OutputMode::Append, Trigger::Default));
    assert!(matches!(&spec.query, Query::Sql(sql) if sql == "SELECT * FROM lines"));
    assert_eq!(spec.checkpoint, None);
    assert_eq!(value(&loaded, "output_mode").origin, Origin::Default);
    assert_eq!(value(&loaded, "sink.format").origin.to_string(), format!("query file {}:7", loaded.file.display()));
}

#[test]
fn everything_that_a_query_can_say_arrives() {
    let files = Files::new(&[
        ("query.sql", "SELECT 1"),
        ("words.wasm", "not really"),
        (
            "query.toml",
            r#"
            name = "counts"
            sql_file = "query.sql"
            output_mode = "Complete"
            trigger = "10 seconds"
            checkpoint = "state/here"
            [[source]]
            name = "events"
            format = "json"
            schema = "ts TIMESTAMP, word STRING"
            watermark = { column = "ts", delay = "1 minute" }
            [source.options]
            path = "in/*"
            maxFilesPerTrigger = 3
            latestFirst = false
            [[table]]
            name = "pages"
            format = "csv"
            schema = "id INT"
            options = { path = "/data/pages.csv", header = true }
            [plugin.words]
            component = "words.wasm"
            on_fault = "dead-letter"
            memory = "32 MiB"
            deadline = "250 ms"
            result = 1048576
            [sink]
            format = "parquet"
            options = { path = "s3://bucket/out" }
            [settings]
            spark.sql.shuffle.partitions = 3
            "spark.sql.ansi.enabled" = false
            [uid]
            "hot-aggregate" = "old-aggregate"
            "#,
        ),
    ]);
    let loaded = files.load(&[], Overrides::default()).unwrap();
    let spec = &loaded.spec;
    assert_eq!((spec.name.as_deref(), spec.mode), (Some("counts"), OutputMode::Complete));
    assert!(matches!(&spec.query, Query::Sql(sql) if sql == "SELECT 1"));
    assert_eq!(spec.trigger, Trigger::ProcessingTime(Duration::from_secs(10)));
    assert_eq!(spec.checkpoint.as_deref(), Some(&*files.text("state/here")));
    let stream = &spec.streams[0];
    assert_eq!(stream.source.options.get("path"), Some(&*files.text("in/*")));
    assert_eq!(stream.source.options.get("maxfilespertrigger"), Some("3"));
    assert_eq!(stream.source.schema.as_ref().unwrap().fields().len(), 2);
    assert_eq!(stream.event_time.as_ref().unwrap().delay_us, 60_000_000);
    let TableSpec::Files(table) = &spec.tables[0] else { panic!("{:?}", spec.tables) };
    assert_eq!(table.options.get("path"), Some("/data/pages.csv"));
    let plugin = &spec.plugins[0];
    assert_eq!((plugin.name.as_str(), plugin.on_fault), ("words", FaultPolicy::DeadLetter));
    assert_eq!(plugin.component, b"not really");
    assert_eq!(plugin.limits.memory_bytes, 32 << 20);
    assert_eq!(plugin.limits.deadline, Duration::from_millis(250));
    assert_eq!(plugin.limits.result_bytes, 1 << 20);
    assert_eq!(spec.sink.options.get("path"), Some("s3://bucket/out"));
    assert_eq!((spec.settings.partitions, spec.settings.ansi), (3, false));
    assert_eq!(spec.uids["hot-aggregate"], "old-aggregate");
}

#[test]
fn unknown_keys_are_named_with_their_line_and_those_that_exist() {
    let refused = refusal(&MINIMAL.replace("[sink]", "optoins = {}\n[sink]"));
    assert!(refused.starts_with("query.toml:6: unknown field `optoins`"), "{refused}");
    assert!(refused.contains("`options`") && refused.contains("`watermark`"), "{refused}");
    let refused = refusal(&format!("triger = \"once\"\n{MINIMAL}"));
    assert!(refused.starts_with("query.toml:1: unknown field `triger`") && refused.contains("`trigger`"), "{refused}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (change, to, wanted) in [
        ("sql = \"SELECT * FROM lines;\"", "", "query.toml: `sql` is missing"),
        ("sql = \"SELECT * FROM lines;\"", "sql = \" ; \"", "query.toml:2: `sql` is missing"),
        ("[sink]\nformat = \"console\"", "", "query.toml: `sink` is missing"),
        ("format = \"console\"", "", "query.toml:6: `sink.format` is missing"),
        ("name = \"lines\"", "", "query.toml:3: `source.name` is missing"),
        ("name = \"lines\"", "name = \"\"", "`source.name` cannot be ``"),
        (
            "format = \"rate\"",
            "format = \"rate\"\nschema = \"a NOTHING\"",
            "query.toml:6: `source.lines.schema` cannot be",
        ),
        (
            "format = \"rate\"",
            "format = \"rate\"\nwatermark = { column = \"t\" }",
            "`source.lines.watermark.delay` is missing",
        ),
        (
            "format = \"rate\"",
            "format = \"rate\"\nwatermark = { column = \"t\", delay = \"-1 second\" }",
            "a delay cannot be negative",
        ),
        ("format = \"rate\"", "format = \"rate\"\noptions = { a = [1] }", "query.toml:6: invalid type: sequence"),
        ("[sink]", "[settings]\nspark.nonsense = 1\n[sink]", "query.toml:7: setting `spark.nonsense` is unknown"),
        ("[sink]", "[settings]\nspark.sql.shuffle.partitions = 0\n[sink]", "a number from 1 to 1024"),
        ("[sink]", "[uid]\na = \"../b\"\n[sink]", "query.toml:7: `uid.a` cannot be `../b`"),
        ("[sink]", "[[table]]\nname = \"LINES\"\nformat = \"csv\"\n[sink]", "the name `LINES` is there twice"),
        ("[sink]", "[plugin.p]\n[sink]", "query.toml:6: `plugin.p.component` is missing"),
        ("[sink]", "[plugin.p]\ncomponent = \"p.wasm\"\n[sink]", "cannot read a component `p.wasm`"),
        ("sql =", "output_mode = \"sometimes\"\nsql =", "query.toml:2: `output_mode` cannot be `sometimes`"),
        ("sql =", "trigger = \"sometimes\"\nsql =", "query.toml:2: `trigger` cannot be `sometimes`"),
        ("sql =", "name = \"\"\nsql =", "query.toml:2: `name` cannot be ``"),
        ("sql =", "sql_file = \"a\"\nsql =", "`sql` and `sql_file` are both there"),
        ("sql =", "this is not TOML\nsql =", "query.toml:2: "),
    ] {
        let refused = refusal(&MINIMAL.replace(change, to));
        assert!(refused.contains(wanted), "wanted `{wanted}`, got `{refused}`");
    }
}

#[test]
fn files_that_are_none_are_refused_before_they_are_read() {
    let folder = TempDir::new().unwrap();
    let refused = |path: &Path| load(path, None, &[], Overrides::default()).unwrap_err();
    assert!(matches!(refused(folder.path()), QueryFileError::Unreadable { .. }));
    assert!(matches!(refused(Path::new("/dev/zero")), QueryFileError::Unreadable { .. }));
    let missing = refused(&folder.path().join("none.toml"));
    assert_eq!((missing.fault(), missing.hint().is_some()), (Fault::Query, true));
    let large = folder.path().join("large.toml");
    std::fs::write(&large, "#".repeat((FILE_BYTES + 1) as usize)).unwrap();
    assert!(matches!(refused(&large), QueryFileError::TooLarge { limit: FILE_BYTES, .. }));
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    assert!(refused(&binary).to_string().contains("cannot read a query file"));
    let deep = folder.path().join("deep.toml");
    std::fs::write(&deep, format!("settings = {}1{}", "{a = ".repeat(5000), "}".repeat(5000))).unwrap();
    assert!(matches!(refused(&deep), QueryFileError::Syntax { .. }));
}

#[test]
fn the_last_word_wins_and_every_value_says_whose_it_is() {
    const PARTITIONS: &str = "spark.sql.shuffle.partitions";
    const VARIABLE: &str = "MILLSTREAM_SETTING_SPARK_SQL_SHUFFLE_PARTITIONS";
    let host = ("host.toml", "[settings]\nspark.sql.shuffle.partitions = 11\nspark.sql.ansi.enabled = false");
    let plain = Files::new(&[("query.toml", MINIMAL), host]);
    let loaded = plain.load(&[], Overrides::default()).unwrap();
    assert_eq!(loaded.spec.settings.partitions, 11);
    assert!(matches!(value(&loaded, PARTITIONS).origin, Origin::HostFile(_)));

    let text = format!("trigger = \"once\"\ncheckpoint = \"a\"\n{MINIMAL}[settings]\n{PARTITIONS} = 22\n");
    let files = Files::new(&[("query.toml", &*text), host]);
    let loaded = files.load(&[], Overrides::default()).unwrap();
    assert_eq!((loaded.spec.settings.partitions, loaded.spec.settings.ansi), (22, false));
    assert!(matches!(value(&loaded, PARTITIONS).origin, Origin::QueryFile(_)));

    let env = [
        (VARIABLE, "33"),
        ("MILLSTREAM_TRIGGER", "available now"),
        ("MILLSTREAM_CHECKPOINT", "b"),
        ("MILLSTREAM_TOOLCHAINS", "/opt/t"),
    ];
    let loaded = files.load(&env, Overrides::default()).unwrap();
    let spec = &loaded.spec;
    assert_eq!((spec.settings.partitions, spec.trigger), (33, Trigger::AvailableNow));
    assert_eq!(spec.checkpoint.as_deref(), Some("b"), "relative to the working directory");
    assert_eq!(value(&loaded, PARTITIONS).origin, Origin::Environment(VARIABLE.into()));

    let overrides = Overrides {
        trigger: Some("1 minute".into()),
        checkpoint: Some("c".into()),
        settings: vec![(PARTITIONS.into(), "44".into())],
        ..Overrides::default()
    };
    let loaded = files.load(&env, overrides).unwrap();
    let spec = &loaded.spec;
    assert_eq!((spec.settings.partitions, spec.checkpoint.as_deref()), (44, Some("c")));
    assert_eq!(spec.trigger, Trigger::ProcessingTime(Duration::from_secs(60)));
    assert_eq!(value(&loaded, PARTITIONS).origin.to_string(), "flag --set");
    assert_eq!(value(&loaded, "trigger").origin.to_string(), "flag --trigger");
}

#[test]
fn wrong_variables_and_flags_are_named() {
    let files = Files::new(&[("query.toml", MINIMAL)]);
    let refused = |env: &[(&str, &str)], overrides| files.load(env, overrides).unwrap_err().to_string();
    let none = Overrides::default;
    assert!(refused(&[("MILLSTREAM_TRIGGER", "often")], none()).contains("`MILLSTREAM_TRIGGER` cannot be `often`"));
    assert!(refused(&[("MILLSTREAM_CHECKPOINT", " ")], none()).contains("`MILLSTREAM_CHECKPOINT` is empty"));
    let trigger = Overrides { trigger: Some("often".into()), ..none() };
    assert!(refused(&[], trigger).starts_with("`--trigger often` does not fit"));
    let setting = Overrides { settings: vec![("a".into(), "b".into())], ..none() };
    assert!(refused(&[], setting).starts_with("`--set a=b` does not fit: setting `a` is unknown"));
}

#[test]
fn the_operator_grants_what_plugins_may_use() {
    let host = |text: &'static str| ("host.toml", text);
    let query = |limits: &str| MINIMAL.replace("[sink]", &format!("[plugin.p]\ncomponent = \"p\"\n{limits}\n[sink]"));
    let load =
        |host, query: &str| Files::new(&[("p", ""), ("query.toml", query), host]).load(&[], Overrides::default());
    let small = host("[plugins]\nmemory_max = \"16 MiB\"\ndeadline = \"100 ms\"\ndeadline_max = \"2 seconds\"");
    let loaded = load(small, &query("")).unwrap();
    let limits = &loaded.spec.plugins[0].limits;
    assert_eq!((limits.memory_bytes, limits.deadline), (16 << 20, Duration::from_millis(100)));
    assert!(matches!(value(&loaded, "plugin.p.memory").origin, Origin::HostFile(_)));
    assert_eq!(value(&loaded, "plugin.p.result").origin, Origin::Default);

    let limits = load(small, &query("deadline = \"2 seconds\"")).unwrap().spec.plugins[0].limits.clone();
    assert_eq!(limits.deadline, Duration::from_secs(2));
    let error = load(small, &query("memory = \"17 MiB\"")).unwrap_err();
    assert!(
        error.to_string().ends_with("plugin `p` asks for `memory = 17 MiB`, and the host file grants at most 16 MiB")
    );
    assert!(error.hint().unwrap().contains("memory_max"));
    for limits in
        ["memory = \"1 byte\"", "memory = \"5 GiB\"", "deadline = \"0 s\"", "deadline = \"2 hours\"", "result = 0"]
    {
        let error = load(host(""), &query(limits)).unwrap_err();
        assert!(matches!(error, QueryFileError::Invalid { .. }), "{limits}: {error}");
    }
    let contradiction = host("[plugins]\nmemory = \"32 MiB\"\nmemory_max = \"16 MiB\"");
    assert!(load(contradiction, &query("")).unwrap_err().to_string().contains("it is above `memory_max`"));
}

#[test]
fn credentials_come_from_the_host_file_and_are_never_shown() {
    let host = "[directories]\nrun = \"sockets\"\n[object_store]\naws_region = \"x\"\naws_secret_access_key = { env = \"KEY\" }";
    let files = Files::new(&[("query.toml", MINIMAL), ("host.toml", host)]);
    let loaded = files.load(&[("KEY", "hunter2")], Overrides::default()).unwrap();
    let options = &loaded.spec.checkpoint_options;
    assert!(options.contains(&("aws_secret_access_key".into(), "hunter2".into())), "{options:?}");
    assert!(!format!("{:?}", loaded.values).contains("hunter2"));
    assert_eq!(loaded.run_dir.as_deref(), Some(&*files.path("sockets")));
    let error = files.load(&[], Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("the environment has no such variable"), "{error}");

    let variable = files.text("host.toml");
    let env = [("MILLSTREAM_HOST_FILE".to_owned(), variable), ("KEY".to_owned(), "k".to_owned())];
    let loaded = load(&files.path("query.toml"), None, &env, Overrides::default()).unwrap();
    assert_eq!(loaded.spec.checkpoint_options.len(), 2);
}

#[test]
fn sparks_option_for_the_checkpoint_is_taken_too_but_not_twice() {
    let with_option = MINIMAL.replace("\"console\"", "\"console\"\noptions = { checkpointLocation = \"c\" }");
    let files = Files::new(&[("query.toml", &*with_option)]);
    let loaded = files.load(&[], Overrides::default()).unwrap();
    assert_eq!(loaded.spec.checkpoint, Some(files.text("c")));
    assert_eq!(loaded.spec.sink.options.get("checkpointLocation"), None);
    let refused = refusal(&format!("checkpoint = \"d\"\n{with_option}"));
    assert!(refused.contains("are both there"), "{refused}");
}

#[test]
fn memory_of_state_is_the_operators_and_is_shown() {
    let host = "[directories]\nspill = \"beyond\"\n[state]\nmemory = \"512 MiB\"";
    let files = Files::new(&[("query.toml", MINIMAL), ("host.toml", host)]);
    let loaded = files.load(&[], Overrides::default()).unwrap();
    assert_eq!(loaded.spec.state.memory, Some(512 << 20));
    assert_eq!(loaded.spec.state.spill.as_deref(), Some(&*files.path("beyond")));
    let shown = value(&loaded, "state.memory");
    assert_eq!(
        (&*shown.value, shown.origin.to_string()),
        ("512 MiB", format!("host file {}:4", files.text("host.toml")))
    );
    assert_eq!(value(&loaded, "directories.spill").value, files.text("beyond"));

    let loaded = load_text(MINIMAL).unwrap();
    assert_eq!((loaded.spec.state.memory, &*value(&loaded, "state.memory").value), (None, "no limit"));
    for (memory, reason) in
        [("\"12 parsecs\"", "write a whole number and a unit"), ("1000", "a size from 1 MiB to 16384 GiB is expected")]
    {
        let host = format!("[state]\nmemory = {memory}");
        let files = Files::new(&[("query.toml", MINIMAL), ("host.toml", &host)]);
        let error = files.load(&[], Overrides::default()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(refusal(&format!("{MINIMAL}\n[state]\nmemory = \"1 MiB\"")).contains("state"));
}

#[test]
fn functions_that_are_created_in_front_of_the_query_are_plugins() {
    let query = |sql: &str, more: &str| {
        let text = format!(
            "sql = \"{sql}\"\n[[source]]\nname = \"lines\"\nformat = \"rate\"\n{more}\n[sink]\nformat = \"console\"\n"
        );
        Files::new(&[("query.toml", &text), ("stats.wasm", "not really")])
    };
    let create = "CREATE FUNCTION top_k USING COMPONENT 'stats.wasm';";
    let files = query(&format!("{create} CREATE OR REPLACE FUNCTION f USING COMPONENT './stats.wasm'; SELECT 1;"), "");
    let loaded = files.load(&[], Overrides::default()).unwrap();
    assert!(matches!(&loaded.spec.query, Query::Sql(sql) if sql.starts_with(create) && sql.ends_with("SELECT 1")));
    let [plugin] = loaded.spec.plugins.as_slice() else { panic!("one plugin") };
    assert_eq!((plugin.name.as_str(), plugin.component.as_slice()), ("stats", b"not really".as_slice()));
    // A plugin that is declared keeps what it is declared with.
    let files = query(&format!("{create} SELECT 1"), "[plugin.stats]\ncomponent = \"stats.wasm\"\non_fault = \"skip\"");
    let loaded = files.load(&[], Overrides::default()).unwrap();
    assert_eq!(loaded.spec.plugins[0].on_fault, FaultPolicy::Skip);
    let refused = |sql: &str| {
        let files = query(sql, "");
        files.load(&[], Overrides::default()).unwrap_err().to_string()
    };
    let two = refused(&format!("{create} CREATE FUNCTION f USING COMPONENT 'none/stats.wasm'; SELECT 1"));
    assert!(two.contains("would make a second plugin `stats`"), "{two}");
    assert!(refused("CREATE VIEW v AS SELECT 1; SELECT 1").contains("expected FUNCTION"));
    assert!(refused("CREATE FUNCTION f USING COMPONENT 'none.wasm'; SELECT 1").contains("none.wasm"));
    assert!(refused(create).contains("`sql` is missing"));
}

#[test]
fn the_operator_grants_permissions_to_names() {
    let host = |text: &'static str| ("host.toml", text);
    let query = |rest: &str| MINIMAL.replace("[sink]", &format!("[plugin.p]\ncomponent = \"p\"\n{rest}\n[sink]"));
    let load =
        |host, query: &str| Files::new(&[("p", ""), ("query.toml", query), host]).load(&[], Overrides::default());
    let nothing = load(host(""), &query("")).unwrap();
    assert_eq!(*nothing.spec.plugins[0].limits.permissions, millstream_wasm::Permissions::default());

    let generous = host(
        "[grants.p]\nconfig = true\nclock = true\nrandom = true\nhttp = [\"api.example.com\", \"*.example.org:8443\"]\n\
         http_private = true\nhttp_response = \"1 MiB\"\n[grants.other]\nclock = true",
    );
    let loaded = load(generous, &query("[plugin.p.config]\nlevel = 3\n\"a.b\" = \"c\"")).unwrap();
    let permissions = &loaded.spec.plugins[0].limits.permissions;
    assert!(permissions.clock && permissions.random);
    let config = permissions.config.as_ref().unwrap();
    assert_eq!((config["level"].as_str(), config["a.b"].as_str()), ("3", "c"));
    let http = permissions.http.as_ref().unwrap();
    assert_eq!((http.hosts.len(), http.private, http.response_bytes), (2, true, 1 << 20));

    let error = load(host(""), &query("[plugin.p.config]\nlevel = 3")).unwrap_err();
    assert!(error.to_string().contains("does not grant `config` in [grants.p]"), "{error}");
    let error = load(host("[grants.p]\nhttp = [\"http://a\"]"), &query("")).unwrap_err();
    assert!(error.to_string().contains("`http://a` is no host"), "{error}");
    assert!(load(host("[grants.p]\nfiles = true"), &query("")).is_err());

    let authority = include_str!("../../../wasm/src/permissions/http/certificates/authority.pem");
    let with_ca = |pem: &str| {
        let host = "[grants.p]\nhttp = [\"inside\"]\nhttp_ca = \"ca.pem\"";
        let files = [("p", ""), ("query.toml", &*query("")), ("host.toml", host), ("ca.pem", pem)];
        Files::new(&files).load(&[], Overrides::default())
    };
    let loaded = with_ca(authority).unwrap();
    let trusted = &loaded.spec.plugins[0].limits.permissions;
    assert_eq!(trusted.http_authorities.as_deref(), Some(authority.as_bytes()));
    let error = with_ca("none").unwrap_err().to_string();
    assert!(error.contains("grants.p.http_ca") && error.contains("no certificate"), "{error}");
}

#[test]
fn accounts_and_compiling_are_the_operators() {
    let query = MINIMAL.replace("[sink]", "[plugin.p]\ncomponent = \"p\"\n[sink]");
    let of_tenant = format!("tenant = \"acme\"\n{query}");
    let load = |host: &str, query: &str| {
        Files::new(&[("p", ""), ("query.toml", query), ("host.toml", host)]).load(&[], Overrides::default())
    };
    let host = "[plugins]\nlog = \"1 KiB\"\ncpu_per_call = \"50 ms\"\ninstances = 7\ncpu_per_second = \"500 ms\"\ncpu_beyond = \"reject\"\n\
                component_max = \"1 MiB\"\ncompile_time = \"10 seconds\"\ncompile_memory = \"1 GiB\"\ncache = \"here\"\n\
                cache_size = \"10 MiB\"\n[tenants.acme]\ncpu_per_second = \"2 seconds\"\nmemory = \"1 GiB\"\ninstances = 9";
    let loaded = load(host, &of_tenant).unwrap();
    let limits = &loaded.spec.plugins[0].limits;
    assert_eq!((limits.log_bytes_per_call, limits.cpu_per_call), (1 << 10, Some(Duration::from_millis(50))));
    let account = &limits.account;
    assert_eq!((account.instances, account.cpu_per_second), (Some(7), Some(Duration::from_millis(500))));
    assert_eq!(account.beyond, millstream_wasm::Beyond::Reject);
    let tenant = limits.tenant.as_ref().unwrap();
    assert_eq!(
        (tenant.name.as_str(), tenant.limits.memory_bytes, tenant.limits.instances),
        ("acme", Some(1 << 30), Some(9))
    );
    let compile = &loaded.plugin_host.compile;
    assert_eq!((compile.component_bytes, compile.memory_bytes, compile.time.as_secs()), (1 << 20, 1 << 30, 10));
    let cache = loaded.plugin_host.cache.as_ref().unwrap();
    assert!(cache.folder.is_absolute() && cache.folder.ends_with("here"));
    assert_eq!(cache.limit_bytes, 10 << 20);

    assert_eq!(load("[plugins]\ncache = \"off\"", &query).unwrap().plugin_host.cache, None);
    assert!(load("", &of_tenant).unwrap_err().to_string().contains("no [tenants] entry"));
    for wrong in [
        "instances = 0",
        "cpu_per_call = \"0 s\"",
        "cpu_per_second = \"0 s\"",
        "cpu_beyond = \"cry\"",
        "compile_time = \"0 s\"",
    ] {
        assert!(load(&format!("[plugins]\n{wrong}"), &query).is_err(), "{wrong}");
    }
}
