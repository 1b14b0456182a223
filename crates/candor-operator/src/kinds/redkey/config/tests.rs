//! `spec.config` as users write it, and the configuration that servers get.

use proptest::prelude::*;

use super::text::{parse, quoted};
use super::{Merged, Password, Storage, TextError, memory, merge};

fn ephemeral(text: &str) -> Merged {
    merge(text, Storage::Ephemeral, None).expect("a configuration")
}

fn lines(merged: &Merged) -> Vec<&str> {
    merged.file.lines().collect()
}

fn values(line: &str) -> Vec<String> {
    let found = parse(line).expect("a directive").remove(0);
    found
        .values
        .iter()
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect()
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    assert_eq!(
        lines(&merge("", Storage::Volume, None).unwrap()),
        [
            "maxmemory 1600mb",
            "maxmemory-samples 5",
            "maxmemory-policy allkeys-lru",
            "protected-mode no",
            "cluster-require-full-coverage no",
            "cluster-migration-barrier 1",
            "cluster-allow-replica-migration no",
            "cluster-node-timeout 15000",
            "repl-diskless-sync-delay 0",
            "appendonly yes",
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            "dir /data",
            "port 6379",
        ]
    );
    let made = ephemeral("");
    assert!(lines(&made).contains(&"appendfsync no") && lines(&made).contains(&"save \"\""));
    assert_eq!(
        (made.maxmemory, made.node_timeout, made.keeps_data),
        (1600 << 20, 15000, true)
    );
}

#[test]
fn the_text_wins_over_defaults_and_repeated_keys_stay_in_their_order() {
    let text = "# a cache\n\nMaxMemory 90mb\r\nsave 900 1\n  save 300 10\nloadmodule /a.so x\nloadmodule /b.so\nappendonly no\n";
    let made = ephemeral(text);
    let file = lines(&made);
    assert!(
        !file
            .iter()
            .any(|line| line.starts_with("maxmemory 1600mb") || *line == "save \"\"")
    );
    let written: Vec<&&str> = file
        .iter()
        .filter(|line| line.starts_with("save") || line.starts_with("loadmodule") || line.starts_with("Max"))
        .collect();
    assert_eq!(
        written,
        [
            &"MaxMemory 90mb",
            &"save 900 1",
            &"save 300 10",
            &"loadmodule /a.so x",
            &"loadmodule /b.so"
        ]
    );
    assert_eq!(made.maxmemory, 90 << 20);
    assert!(made.keeps_data, "there are snapshots");
}

#[test]
fn only_lines_that_change_something_count_as_changes() {
    let text = "# note\nmaxmemory  1600mb\nsave \"\"\nrequirepass x\nport 6379\nport 1\nhz 20\n";
    assert_eq!(ephemeral(text).changes, ["hz 20"]);
    let twice = "maxmemory 1gb\nmaxmemory 1600mb";
    assert_eq!(
        ephemeral(twice).changes.len(),
        2,
        "the first line alone would mean something else"
    );
}

#[test]
fn a_server_without_log_and_snapshots_keeps_nothing() {
    for text in [
        "appendonly no",
        "appendonly no\nsave \"\"",
        "appendonly yes\nappendonly NO",
        "appendonly no\nsave 60 1\nsave ''",
    ] {
        assert!(!ephemeral(text).keeps_data, "{text}");
    }
    assert!(merge("appendonly no", Storage::Volume, None).unwrap().keeps_data);
}

#[test]
fn values_are_read_as_servers_read_them() {
    for (line, expected) in [
        (r#"a "b c" d"#, vec!["b c", "d"]),
        (r#"a "x\"y\\z""#, vec![r#"x"y\z"#]),
        (r#"a "\x41\n\t\q""#, vec!["A\n\tq"]),
        (r"a 'it\'s \n'", vec![r"it's \n"]),
        (r#"a pre"fix ed""#, vec!["prefix ed"]),
        (r#"a """#, vec![""]),
        ("a # b", vec!["#", "b"]),
        (r#"a "\xZZ""#, vec!["xZZ"]),
        ("a\tb\u{b}c", vec!["b\u{b}c"]),
        ("a b\\ c", vec!["b\\", "c"]),
    ] {
        assert_eq!(values(line), expected, "{line}");
    }
}

#[test]
fn an_error_names_the_line_and_never_the_value() {
    let table: [(&str, TextError); 6] = [
        (
            "maxmemory 1mb\n# fine\nrequirepass \"hunter2",
            TextError::Quotes {
                line: 3,
                key: "requirepass".to_owned(),
            },
        ),
        (
            "requirepass \"hunter2\"x",
            TextError::Quotes {
                line: 1,
                key: "requirepass".to_owned(),
            },
        ),
        (
            "\n\nMaxmemory",
            TextError::NoValue {
                line: 3,
                key: "maxmemory".to_owned(),
            },
        ),
        ("a b\0c", TextError::Zero { line: 1 }),
        (
            "requirepass \"hunter2\\xff\"",
            TextError::Password {
                line: 1,
                key: "requirepass".to_owned(),
            },
        ),
        (
            "maxmemory hunter2",
            TextError::Value {
                line: 1,
                key: "maxmemory".to_owned(),
                instead: "write bytes such as 100mb or 2gb",
            },
        ),
    ];
    for (text, expected) in table {
        let error = merge(text, Storage::Ephemeral, None).unwrap_err();
        assert_eq!(error, expected);
        assert!(!format!("{error}{error:?}").contains("hunter2"), "{error}");
    }
    let error = merge("appendonly maybe", Storage::Ephemeral, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.config, line 1: the value of appendonly is wrong; write yes or no"
    );
}

#[test]
fn owned_keys_pass_with_the_operators_value_and_are_ignored_with_another() {
    let ours =
        "DIR \"/data/\"\nport 6379\ncluster-enabled YES\ncluster-config-file nodes.conf\ncluster-announce-port 6379";
    assert_eq!(ephemeral(ours).ignored, []);
    assert_eq!(ephemeral(ours).file, ephemeral("").file);
    let theirs = "port 7000\nmaxmemory 1gb\ncluster-announce-ip 10.0.0.1\ncluster-enabled no\ndir /tmp\nport 6379";
    let made = ephemeral(theirs);
    let said: Vec<String> = made.ignored.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "spec.config, line 1: port is ignored: the operator sets it to 6379; remove the line",
            "spec.config, line 3: cluster-announce-ip is ignored: the operator sets it for every server; remove the line",
            "spec.config, line 4: cluster-enabled is ignored: the operator sets it to yes; remove the line",
            "spec.config, line 5: dir is ignored: the operator sets it to /data; remove the line",
        ]
    );
    assert!(!made.file.contains("7000") && !made.file.contains("10.0.0.1") && !made.file.contains("/tmp"));
}

#[test]
fn a_password_in_the_text_is_a_credential_and_not_configuration() {
    let made = ephemeral("requirepass first\nRequirePass 'se cret'\nmasterauth \"se cret\"\nmaxmemory 1gb");
    assert_eq!(made.password.as_ref().map(Password::expose), Some("se cret"));
    assert!(made.ignored.is_empty());
    assert!(!made.file.contains("cret") && !made.file.contains("first"));
    assert!(!format!("{made:?}").contains("se cret"));
    assert_eq!(ephemeral("requirepass \"\"").password, None);
}

#[test]
fn the_password_of_the_secret_wins_and_the_line_is_reported() {
    let secret = Password::new("of-the-secret");
    let made = merge(
        "requirepass hunter2\nmasterauth hunter3",
        Storage::Ephemeral,
        secret.as_ref(),
    )
    .unwrap();
    assert_eq!(made.password, secret);
    let keys: Vec<(&str, usize)> = made.ignored.iter().map(|one| (one.key.as_str(), one.line)).collect();
    assert_eq!(keys, [("requirepass", 1), ("masterauth", 2)]);
    let said = format!("{:?}", made.ignored);
    assert!(!said.contains("hunter"), "{said}");
    let same = merge("requirepass of-the-secret", Storage::Ephemeral, secret.as_ref()).unwrap();
    assert!(same.ignored.is_empty());
}

#[test]
fn resources_follow_from_maxmemory() {
    let amounts = |maxmemory: &str| {
        let made = memory::resources(memory::bytes(maxmemory).unwrap());
        let text =
            |map: &std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>| {
                map.iter()
                    .map(|(key, value)| format!("{key}={}", value.0))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
        (text(&made.requests), text(&made.limits))
    };
    let both = |text: &str| (text.to_owned(), text.to_owned());
    assert_eq!(amounts("1600mb"), both("cpu=1 memory=1900Mi"));
    assert_eq!(amounts("90MB"), both("cpu=1 memory=390Mi"));
    assert_eq!(amounts("1g"), both("cpu=1 memory=1314572800"));
    assert_eq!(amounts("0"), ("cpu=1 memory=300Mi".to_owned(), "cpu=1".to_owned()));
}

#[test]
fn amounts_of_memory_are_read_as_servers_read_them() {
    for (text, expected) in [
        ("100", Some(100)),
        ("1k", Some(1000)),
        ("1Kb", Some(1024)),
        ("2m", Some(2_000_000)),
        ("2b", Some(2)),
        ("1gb", Some(1 << 30)),
        ("", None),
        ("-1", None),
        ("10%", None),
        ("99999999999999999999", None),
        ("99999999999gb", None),
    ] {
        assert_eq!(memory::bytes(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected_with_its_line(text in "[ -~\\n\\t\\r\u{0}]{0,200}") {
        match merge(&text, Storage::Ephemeral, None) {
            Ok(made) => prop_assert!(parse(&made.file).is_ok()),
            Err(error) => {
                let said = error.to_string();
                prop_assert!(said.starts_with("spec.config, line "), "{}", said);
            }
        }
    }

    #[test]
    fn quoted_bytes_are_read_as_they_were(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let found = parse(&format!("key {}", quoted(&bytes))).unwrap();
        prop_assert_eq!(&found[0].values, &vec![bytes]);
    }

    #[test]
    fn no_password_reaches_the_file(password in "[!-~ ]{6,40}", secret in proptest::option::of("[a-z]{6,12}")) {
        let text = format!("maxmemory 1gb\nrequirepass {0}\nmasterauth {0}\n", quoted(password.as_bytes()));
        let secret = secret.and_then(Password::new);
        let made = merge(&text, Storage::Ephemeral, secret.as_ref()).unwrap();
        prop_assert!(!made.file.contains(&password));
        prop_assert!(!made.file.contains("requirepass") && !made.file.contains("masterauth"));
        let expected = secret.or_else(|| Password::new(password.as_str()));
        prop_assert_eq!(made.password, expected);
    }

    #[test]
    fn every_free_line_is_kept_in_its_order_and_owned_lines_stand_last(
        keys in prop::collection::vec("(save|loadmodule|hz|timeout|port|dir|cluster-announce-ip)", 0..20),
    ) {
        let text: Vec<String> = keys.iter().enumerate().map(|(index, key)| format!("{key} {index}")).collect();
        let text = text.join("\n");
        let made = ephemeral(&text);
        let written = text.lines().filter(|line| {
            !["port", "dir", "cluster-announce-ip"].iter().any(|owned| line.starts_with(owned))
        });
        let written: Vec<&str> = written.collect();
        let file = lines(&made);
        let kept: Vec<&str> = file.iter().copied().filter(|line| written.contains(line)).collect();
        prop_assert_eq!(kept, written);
        let owned = ["cluster-enabled yes", "cluster-config-file nodes.conf", "dir /data", "port 6379"];
        prop_assert_eq!(&file[file.len() - owned.len()..], &owned[..]);
    }
}
