//! Objects as a real store shows them: a server that speaks as much of S3 as is asked here.

use super::*;
use crate::connectors::file::bucket::Bucket;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Keys and what they hold. Some end with a slash.
type Objects = &'static [(&'static str, &'static str)];

/// Starts a server with one bucket, and answers its address. It lives as long as the process.
fn s3(objects: Objects) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(&stream.unwrap(), objects));
        }
    });
    address
}

fn serve(mut stream: &TcpStream, objects: Objects) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(request)) = lines.next() {
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let (method, path) = request.split_once(' ').unwrap();
        let path = path.split(' ').next().unwrap().strip_prefix("/bucket").unwrap();
        let answer = match path.split_once('?') {
            Some((_, query)) => Some(listing(objects, query)),
            None => {
                let key = path.trim_start_matches('/').replace("%3D", "=").replace("%24", "$");
                objects.iter().find(|(known, _)| *known == key).map(|(_, content)| (*content).to_owned())
            }
        };
        let (status, body) = answer.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\n\
             Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n",
            body.len()
        );
        let body = if method == "HEAD" { "" } else { &body };
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
}

fn listing(objects: Objects, query: &str) -> String {
    let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix=")).unwrap_or_default();
    let prefix = prefix.replace("%2F", "/").replace("%3D", "=");
    let contents = objects.iter().filter(|(key, _)| key.starts_with(&prefix)).map(|(key, content)| {
        let size = content.len();
        format!(
            "<Contents><Key>{key}</Key><LastModified>2023-11-14T22:13:20Z</LastModified><Size>{size}</Size></Contents>"
        )
    });
    format!("<ListBucketResult>{}</ListBucketResult>", contents.collect::<String>())
}

fn stored(address: &str, options: Options) -> Options {
    options
        .with("path", "s3://bucket/in")
        .with("aws_endpoint", address)
        .with("aws_region", "x")
        .with("aws_skip_signature", "true")
        .with("allow_http", "true")
}

#[test]
fn marks_of_folders_are_no_files() {
    let address = s3(&[
        ("in/", ""),
        ("in/a", "one"),
        ("in/day=2024-05-01/", ""),
        ("in/day=2024-05-01/b", "two"),
        ("in/day=2024-05-02/", ""),
        ("in/day=2024-05-02_$folder$", ""),
        ("in/empty", ""),
    ]);
    let folder = TempDir::new().unwrap();
    let rows = |options: Options| drain(open(&spec("text", &folder, stored(&address, options))).0.as_mut()).concat();
    assert_eq!(rows(Options::new()), ["one|-", "two|2024-05-01"]);
    // An empty file is a row then, and the mark of a folder is none.
    assert_eq!(rows(Options::new().with("wholetext", "true")), ["one|-", "two|2024-05-01", "|-"]);
    let parquet = spec("parquet", &folder, stored(&address, Options::new().with("pathGlobFilter", "[^ab]*")));
    let (mut source, _) = open(&SourceSpec { schema: Some(words()), ..parquet });
    assert!(drain(source.as_mut()).is_empty());
}

#[test]
fn a_percent_sign_in_a_path_is_one() {
    let bucket = Bucket::open("memory://percent/", &[]).unwrap();
    bucket.put("a%20b/100%/x", b"literally");
    bucket.put("a b/100%/x", b"decoded");
    let folder = TempDir::new().unwrap();
    let rows = |path: &str| drain(open(&spec("text", &folder, Options::new().with("path", path))).0.as_mut()).concat();
    assert_eq!(rows("memory://percent/a%20b/100%"), ["literally"]);
    assert_eq!(rows("memory://percent/a b/*"), ["decoded"]);
    put(folder.path(), "a%20b/x", b"here", 1);
    assert_eq!(rows(&format!("file://{}/a%20b", folder.path().display())), ["here"]);
}
