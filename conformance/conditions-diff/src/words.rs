//! The words cases are made of: types, reasons, messages, kinds, names, times.
//!
//! The pools are small on purpose, so that equal messages meet, types are missing from one list and present in
//! another, and conflicts happen; each also holds the odd ones that break a naive rule.

use fastrand::Rng;
use jiff::Timestamp;

const TYPES: &[&str] = &[
    "Ready",
    "Available",
    "Paused",
    "Deleting",
    "InfrastructureReady",
    "ScalingUp",
    "Updating",
    "MachinesReady",
    "NodeKubeadmLabelsAndTaintsSet",
    "Degraded",
    "A",
    "B",
    "Zeta",
    "lower",
    "Ünlaut",
    "example.com/Gate",
];

const REASONS: &[&str] = &[
    "AllGood",
    "NotYetReported",
    "Failed",
    "WaitingForMachine",
    "InternalError",
    "",
    "Failed @ Machine/m7",
    "with space",
];

/// Fragments a line is built from: bullets in every place, white space that counts as such in one language and not in
/// the other, format verbs, letters of more than one byte.
const FRAGMENTS: &[&str] = &[
    "",
    "waiting for the node",
    "disk is full",
    "* ",
    "*",
    "* a bullet",
    "  * an indented bullet",
    "  continued",
    "a * b",
    "2*3",
    "*\ttab",
    "\t*\ttab both sides",
    "*\u{a0}no-break space",
    "*\u{b}vertical tab",
    "*\u{c}form feed",
    "*\u{2028}line separator",
    "*\u{85}next line",
    "100 %d done %s %!",
    "quoted \"text\" and \\ and 'more'",
    "Größe 大きい 🦀",
    "Condition A not yet reported",
    "trailing *",
    "\r",
    "<html> & co",
    "Type: message",
    "- dash",
];

const KINDS: &[&str] = &[
    "Machine",
    "Machine",
    "Machine",
    "MachineSet",
    "MachineDeployment",
    "KubeadmControlPlane",
    "Cluster",
    "ValkeyNode",
    "ClusterClass",
    "Ingress",
    "Gateway",
    "NetworkPolicy",
    "Proxy",
    "Endpoints",
    "Status",
    "Series",
    "Address",
    "IPAddress",
    "ServiceAccount",
    "ConfigMap",
    "StorageClass",
    "PodDisruptionBudget",
    "Replica",
    "Box",
    "Patch",
    "Flash",
    "Analysis",
    "AnalysisRun",
    "Schema",
    "Index",
    "Matrix",
    "Vertex",
    "Datum",
    "Child",
    "Person",
    "Mouse",
    "Leaf",
    "Shelf",
    "Knife",
    "Key",
    "Day",
    "Query",
    "Quiz",
    "Buzz",
    "Hero",
    "Photo",
    "Bus",
    "Virus",
    "Focus",
    "Criterion",
    "Medium",
    "Axis",
    "Alias",
    "Canary",
    "Cache",
    "Batch",
    "Metadata",
    "Media",
    "Data",
    "News",
    "Chassis",
    "DNS",
    "DNSRecord",
    "CSINode",
    "API",
    "VM",
    "VPC",
    "VPCs",
    "IDs",
    "ID",
    "OS",
    "machine",
    "MACHINE",
    "snake_case",
    "kebab-case",
    "Two Words",
    "Größe",
    "X",
    "S",
    "Y",
    "HTTPRoute",
    "Certificate",
    "Issuer",
    "Lease",
    "Event",
    "Namespace",
    "PriorityLevelConfiguration",
    "FlowSchema",
    "RuntimeClass",
    "CustomResourceDefinition",
    "ResourceQuota",
    "PersistentVolumeClaim",
    "Toe",
    "Foot",
    "Tooth",
    "Man",
    "Woman",
    "Ox",
    "Sheep",
    "Fish",
    "Octopus",
    "Potato",
    "Tomato",
    "Zero",
    "Echo",
    "Volcano",
    "Wolf",
    "Roof",
    "Chief",
    "Staff",
    "Half",
    "Life",
    "Safe",
    "Proof",
    "Basis",
    "Crisis",
    "Thesis",
    "Diagnosis",
    "Phenomenon",
    "Automaton",
    "Curriculum",
    "Quorum",
    "Forum",
    "Album",
    "Stadium",
    "Bureau",
    "Plateau",
    "Formula",
    "Nebula",
    "Antenna",
    "Alumnus",
    "Cactus",
    "Radius",
    "Nucleus",
    "Corpus",
    "Genus",
    "Appendix",
    "Prefix",
    "Suffix",
    "Complex",
    "Apex",
    "Codex",
    "Information",
    "Equipment",
    "Software",
    "Firmware",
    "Hardware",
    "Aircraft",
];

/// Endings that inflect, or look as if they did.
const ENDINGS: &[&str] = &[
    "tive", "eaf", "oaf", "afe", "arf", "rf", "lf", "fe", "ff", "ay", "ey", "oy", "quy", "uy", "y", "eau", "bula",
    "dula", "nula", "hedron", "ium", "seum", "eum", "oum", "dum", "elum", "ulum", "llum", "imum", "brum", "trum",
    "atum", "entum", "itum", "ctum", "ovum", "trix", "iasis", "mesis", "resis", "gnosis", "opsis", "ysis", "ouse",
    "ouce", "lla", "eba", "man", "us", "ss", "x", "ch", "sh", "tch", "z", "zz", "o", "eo", "io", "oo", "is", "sis",
    "on", "um", "ix", "ex", "person", "child", "foot", "goose", "tooth", "ox", "die", "penny", "data", "media", "ies",
    "ves", "ses", "xes", "i", "ae", "a", "genus", "corpus", "opus", "viscus", "status", "campus", "bus", "alias",
    "atlas", "gas", "lens", "bonus", "census", "circus", "virus", "cache", "archive", "drive", "move", "hive", "sieve",
    "cookie", "movie", "specie", "series", "shoe", "toe", "house", "mouse", "louse", "blouse", "human", "german",
    "talisman",
];

/// One of a pool.
pub fn pick<'a>(rng: &mut Rng, pool: &[&'a str]) -> &'a str {
    pool[rng.usize(..pool.len())]
}

/// Whether a thing of this probability, in percent, happens.
pub fn percent(rng: &mut Rng, chance: u8) -> bool {
    rng.u8(..100) < chance
}

/// A condition type.
pub fn type_(rng: &mut Rng) -> String {
    pick(rng, TYPES).to_owned()
}

/// Several types; now and then one twice.
pub fn types(rng: &mut Rng, at_most: usize) -> Vec<String> {
    (0..rng.usize(..=at_most)).map(|_| type_(rng)).collect()
}

/// A reason.
pub fn reason(rng: &mut Rng) -> String {
    pick(rng, REASONS).to_owned()
}

/// One of the three statuses.
pub fn status(rng: &mut Rng) -> String {
    pick(rng, &["True", "False", "Unknown"]).to_owned()
}

/// A status as a stored list may hold it: rarely a word that is none.
pub fn stored_status(rng: &mut Rng) -> String {
    if percent(rng, 2) {
        pick(rng, &["", "Maybe", "true"]).to_owned()
    } else {
        status(rng)
    }
}

/// A severity, or none.
pub fn severity(rng: &mut Rng) -> String {
    pick(rng, &["Error", "Warning", "Info", ""]).to_owned()
}

/// One of the three severities.
pub fn some_severity(rng: &mut Rng) -> String {
    pick(rng, &["Error", "Warning", "Info"]).to_owned()
}

/// A message: empty, one line, several lines, bulleted, or very long.
pub fn message(rng: &mut Rng) -> String {
    match rng.u8(..20) {
        0..4 => String::new(),
        4..11 => pick(rng, FRAGMENTS).to_owned(),
        11..14 => format!("{}{}", pick(rng, FRAGMENTS), pick(rng, FRAGMENTS)),
        14..19 => {
            let lines: Vec<&str> = (0..rng.usize(2..=4)).map(|_| pick(rng, FRAGMENTS)).collect();
            lines.join("\n")
        }
        _ => pick(rng, &["ä", "word ", "* line\n", "x"]).repeat(rng.usize(1..=3000)),
    }
}

/// A kind; its plural is the trap.
pub fn kind(rng: &mut Rng) -> String {
    pick(rng, KINDS).to_owned()
}

/// A kind that does not exist: a known word or a few letters with an ending that inflects, perhaps behind another word.
pub fn any_kind(rng: &mut Rng) -> String {
    let head = pick(
        rng,
        &[
            "", "", "Big", "DNS", "HTTP", "my", "snake_", "kebab-", "path/", "É", "x1",
        ],
    );
    let stem = pick(rng, &["", "", "A", "Bl", "str", "Qu", "Ö", "Tr4", "de", "HAND"]);
    let tail = if rng.bool() {
        pick(rng, KINDS)
    } else {
        pick(rng, ENDINGS)
    };
    let end = pick(rng, &["", "", "", "", "", "s", "_", " ", "ID"]);
    format!("{head}{stem}{tail}{end}")
}

/// A time of a small set, so that equal times happen; some lie in the future.
pub fn time(rng: &mut Rng) -> Timestamp {
    const SECONDS: [i64; 6] = [
        1,
        1_600_000_000,
        1_600_000_001,
        1_700_000_000,
        4_000_000_000,
        4_000_000_001,
    ];
    let second = SECONDS[rng.usize(..SECONDS.len())];
    let fraction = if percent(rng, 6) { rng.i32(1..1_000_000_000) } else { 0 };
    Timestamp::new(second, fraction).unwrap_or(Timestamp::UNIX_EPOCH)
}
