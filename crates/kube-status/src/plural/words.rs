//! The suffix rules of English plurals, and the words for which they are wrong, as data.
//!
//! Kinds are pluralised as the helpers of Cluster API do, so that messages read the same: the words and the order of
//! the rules are those of its inflection library, including what an English teacher would mark.

/// One irregular word.
pub(super) struct Word {
    pub singular: &'static str,
    pub plural: &'static str,
    /// A second plural that is recognised as one.
    pub also: &'static str,
    /// The plural belongs to another singular, so that it is not recognised as the plural of this word.
    pub one_way: bool,
    /// Matches as a whole word only, not as the end of a longer one.
    pub whole: bool,
}

const fn word(singular: &'static str, plural: &'static str) -> Word {
    Word {
        singular,
        plural,
        also: "",
        one_way: false,
        whole: false,
    }
}

const fn also(singular: &'static str, plural: &'static str, also: &'static str) -> Word {
    Word {
        singular,
        plural,
        also,
        one_way: false,
        whole: false,
    }
}

const fn one_way(singular: &'static str, plural: &'static str) -> Word {
    Word {
        singular,
        plural,
        also: "",
        one_way: true,
        whole: false,
    }
}

const fn whole(singular: &'static str, plural: &'static str) -> Word {
    Word {
        singular,
        plural,
        also: "",
        one_way: false,
        whole: true,
    }
}

/// The irregular words; as endings, the later beats the earlier.
#[rustfmt::skip]
pub(super) const WORDS: &[Word] = &[
    word("aircraft", "aircraft"), also("beef", "beef", "beefs"), word("bison", "bison"), one_way("blues", "blues"),
    word("chassis", "chassis"), word("deer", "deer"), also("fish", "fish", "fishes"), word("moose", "moose"),
    word("police", "police"), also("salmon", "salmon", "salmons"), word("series", "series"), word("sheep", "sheep"),
    also("shrimp", "shrimp", "shrimps"), word("species", "species"), also("swine", "swine", "swines"),
    also("trout", "trout", "trouts"), also("tuna", "tuna", "tunas"), word("you", "you"), word("child", "children"),
    whole("ox", "oxen"), word("foot", "feet"), word("goose", "geese"), word("man", "men"), word("human", "humans"),
    whole("louse", "lice"), word("mouse", "mice"), word("tooth", "teeth"), word("woman", "women"),
    whole("die", "dice"), word("person", "people"), also("adieu", "adieux", "adieus"), word("fabliau", "fabliaux"),
    also("bureau", "bureaus", "bureaux"), word("criterion", "criteria"), also("ganglion", "ganglia", "ganglions"),
    also("lexicon", "lexica", "lexicons"), also("mitochondrion", "mitochondria", "mitochondrions"),
    word("noumenon", "noumena"), word("phenomenon", "phenomena"), word("taxon", "taxa"), word("media", "media"),
    one_way("medium", "media"), also("stadium", "stadiums", "stadia"), also("aquarium", "aquaria", "aquariums"),
    also("auditorium", "auditoria", "auditoriums"), also("symposium", "symposia", "symposiums"),
    also("curriculum", "curriculums", "curricula"), word("quota", "quotas"), also("alumnus", "alumni", "alumnuses"),
    word("bacillus", "bacilli"), also("cactus", "cacti", "cactuses"), word("coccus", "cocci"),
    also("focus", "foci", "focuses"), also("locus", "loci", "locuses"), also("nucleus", "nuclei", "nucleuses"),
    also("octopus", "octupuses", "octopi"), also("radius", "radii", "radiuses"), word("syllabus", "syllabi"),
    also("corpus", "corpora", "corpuses"), word("genus", "genera"), word("alumna", "alumnae"),
    word("vertebra", "vertebrae"), word("differentia", "differentiae"), word("minutia", "minutiae"),
    word("vita", "vitae"), word("larva", "larvae"), word("postcava", "postcavae"), word("praecava", "praecavae"),
    word("uva", "uvae"), also("apex", "apices", "apexes"), also("codex", "codices", "codexes"),
    also("index", "indices", "indexes"), also("latex", "latices", "latexes"), also("vertex", "vertices", "vertexes"),
    also("vortex", "vortices", "vortexes"), also("appendix", "appendices", "appendixes"),
    also("radix", "radices", "radixes"), also("helix", "helices", "helixes"), whole("axis", "axes"),
    word("crisis", "crises"), one_way("ellipsis", "ellipses"), word("genesis", "geneses"), word("oasis", "oases"),
    word("thesis", "theses"), word("testis", "testes"), word("base", "bases"), one_way("basis", "bases"),
    whole("alias", "aliases"), word("vedalia", "vedalias"), whole("use", "uses"), word("abuse", "abuses"),
    word("cause", "causes"), word("clause", "clauses"), word("cruse", "cruses"), word("excuse", "excuses"),
    word("fuse", "fuses"), word("house", "houses"), word("misuse", "misuses"), word("muse", "muses"),
    word("pause", "pauses"), word("ache", "aches"), word("topaz", "topazes"),
    also("buffalo", "buffaloes", "buffalos"), word("potato", "potatoes"), word("tomato", "tomatoes"),
    word("equipment", "equipment"), word("information", "information"), word("jeans", "jeans"),
    word("money", "money"), word("news", "news"), word("rice", "rice"), also("dwarf", "dwarfs", "dwarves"),
    also("hoof", "hoofs", "hooves"), word("thief", "thieves"), word("chive", "chives"), word("hive", "hives"),
    word("move", "moves"), word("movie", "movies"), word("cookie", "cookies"), word("pretorium", "pretoriums"),
    word("agenda", "agendas"), also("formula", "formulas", "formulae"), word("shoe", "shoes"), whole("toe", "toes"),
    word("graffiti", "graffiti"), whole("ID", "IDs"),
];

/// Endings and their plurals; the earlier beats the later.
#[rustfmt::skip]
pub(super) const ENDINGS: &[(&str, &str)] = &[
    ("tive", "tives"), ("eaf", "eaves"), ("oaf", "oaves"), ("afe", "aves"), ("arf", "arves"), ("rfe", "rves"),
    ("rf", "rves"), ("lf", "lves"), ("fe", "ves"), ("ay", "ays"), ("ey", "eys"), ("oy", "oys"), ("quy", "quies"),
    ("uy", "uys"), ("y", "ies"), ("eau", "eaux"), ("bula", "bulae"), ("dula", "bulae"), ("lula", "bulae"),
    ("nula", "bulae"), ("vula", "bulae"), ("hedron", "hedra"), ("ium", "ia"), ("seum", "seums"), ("eum", "ea"),
    ("oum", "oa"), ("stracum", "straca"), ("dum", "da"), ("elum", "ela"), ("ilum", "ila"), ("olum", "ola"),
    ("ulum", "ula"), ("llum", "lla"), ("ylum", "yla"), ("imum", "ima"), ("ernum", "erna"), ("gnum", "gna"),
    ("brum", "bra"), ("crum", "cra"), ("terum", "tera"), ("serum", "sera"), ("trum", "tra"), ("antum", "anta"),
    ("atum", "ata"), ("entum", "enta"), ("etum", "eta"), ("itum", "ita"), ("otum", "ota"), ("utum", "uta"),
    ("ctum", "cta"), ("ovum", "ova"), ("trix", "trices"), ("iasis", "iases"), ("mesis", "meses"),
    ("kinesis", "kineses"), ("resis", "reses"), ("gnosis", "gnoses"), ("opsis", "opses"), ("ysis", "yses"),
    ("ouse", "ouses"), ("lause", "lauses"), ("us", "uses"), ("ch", "ches"), ("io", "ios"), ("sh", "shes"),
    ("ss", "sses"), ("ez", "ezzes"), ("iz", "izzes"), ("tz", "tzes"), ("zz", "zzes"), ("ano", "anos"), ("lo", "los"),
    ("to", "tos"), ("oo", "oos"), ("o", "oes"), ("x", "xes"), ("S", "Ses"),
];

/// Words in capitals that end where the next capital begins: `DNSIndex` is `DNS` and `Index`.
#[rustfmt::skip]
pub(super) const ACRONYMS: &[&str] = &[
    "OK", "UTF8", "HTML", "JSON", "JWT", "ID", "UUID", "SQL", "ACK", "ACL", "ADSL", "AES", "ANSI", "API", "ARP",
    "ATM", "BGP", "BSS", "CCITT", "CHAP", "CIDR", "CIR", "CLI", "CPE", "CPU", "CRC", "CRT", "CSMA", "CMOS", "DCE",
    "DEC", "DES", "DHCP", "DNS", "DRAM", "DSL", "DSLAM", "DTE", "DMI", "EHA", "EIA", "EIGRP", "EOF", "ESS", "FCC",
    "FCS", "FDDI", "FTP", "GBIC", "GEPOF", "HDLC", "HTTP", "HTTPS", "IANA", "ICMP", "IDF", "IDS", "IEEE", "IETF",
    "IMAP", "IP", "IPS", "ISDN", "ISP", "LACP", "LAN", "LAPB", "LAPF", "LLC", "MAC", "MC", "MDF", "MIB", "MPLS",
    "MTU", "NAC", "NAT", "NBMA", "NIC", "NRZ", "NRZI", "NVRAM", "OSI", "OSPF", "OUI", "PAP", "PAT", "PC", "PIM",
    "PCM", "PDU", "POP3", "POTS", "PPP", "PPTP", "PTT", "PVST", "RAM", "RARP", "RFC", "RIP", "RLL", "ROM", "RSTP",
    "RTP", "RCP", "SDLC", "SFD", "SFP", "SLARP", "SLIP", "SMTP", "SNA", "SNAP", "SNMP", "SOF", "SRAM", "SSH", "SSID",
    "STP", "SYN", "TDM", "TFTP", "TIA", "TOFU", "UDP", "URL", "URI", "USB", "UTP", "VC", "VLAN", "VLSM", "VPN", "W3C",
    "WAN", "WEP", "WPA", "WWW",
];
