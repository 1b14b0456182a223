//! Which Secrets members can use among each other, and why not the others.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use valkey_admin::client::{DesiredCertificate, Fingerprint, Tls};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key.
fn issue(by: &Authority, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["valkey.example".to_owned()]).unwrap();
    change(&mut params);
    (params.signed_by(&key, by).unwrap().pem(), key.serialize_pem())
}

#[test]
fn an_unusable_certificate_secret_is_rejected_with_its_cause() {
    let (one, two) = (authority("one"), authority("two"));
    let (good, key) = issue(&one, |_| {});
    let (_, other) = issue(&one, |_| {});
    let for_servers = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    };
    let (server_only, server_key) = issue(&one, for_servers);
    let (expired, expired_key) = issue(&one, |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let (early, early_key) = issue(&one, |params| params.not_before = rcgen::date_time_ymd(3000, 1, 1));
    let chain = "tls.crt is of no use beside this ca.crt: ";
    let both = one.pem() + &two.pem();
    let table = [
        ("as it should be", one.pem(), &good, &key, None),
        ("beside another CA", both, &good, &key, None),
        (
            "another key",
            one.pem(),
            &good,
            &other,
            Some("tls.crt and tls.key cannot be used together: ".to_owned()),
        ),
        (
            "no certificate",
            one.pem(),
            &"hello".to_owned(),
            &key,
            Some("tls.crt holds no usable certificate or key: ".to_owned()),
        ),
        (
            "no key",
            one.pem(),
            &good,
            &"hello".to_owned(),
            Some("tls.key holds no usable certificate or key: ".to_owned()),
        ),
        (
            "no CA",
            "hello".to_owned(),
            &good,
            &key,
            Some("ca.crt holds no usable certificate or key: ".to_owned()),
        ),
        (
            "another CA",
            two.pem(),
            &good,
            &key,
            Some(format!("{chain}it is signed by none of the CAs in ca.crt")),
        ),
        (
            "expired",
            one.pem(),
            &expired,
            &expired_key,
            Some(format!("{chain}it has expired")),
        ),
        (
            "too early",
            one.pem(),
            &early,
            &early_key,
            Some(format!("{chain}it is not valid yet")),
        ),
        (
            "for servers alone",
            one.pem(),
            &server_only,
            &server_key,
            Some(format!(
                "{chain}it must be for server auth and for client auth, because members show it to each other"
            )),
        ),
    ];
    for (what, authority, certificate, key, wrong) in table {
        let read = DesiredCertificate::read(authority.as_bytes(), certificate.as_bytes(), key.as_bytes());
        match (read, wrong) {
            (Ok(_), None) => {}
            (Err(error), Some(cause)) => assert!(error.to_string().starts_with(&cause), "{what}: {error}"),
            (read, wrong) => panic!("{what}: {read:?} instead of {wrong:?}"),
        }
    }
}

#[test]
fn trust_in_the_same_cas_is_the_same_however_they_were_written() {
    let [one, two] = [authority("one").pem(), authority("two").pem()].map(String::into_bytes);
    let both = [one.clone(), two.clone()].concat();
    let accepted = [Fingerprint::of(b"a certificate"), Fingerprint::of(b"another")];
    let trust = |files: &[&[u8]]| Tls::trusting(files, &accepted).unwrap();
    assert_eq!(trust(&[&one, &two]), trust(&[&two, &one]));
    assert_eq!(trust(&[&both]), trust(&[&one, &two, &one]));
    assert_eq!(trust(&[&one, b"hello"]), trust(&[&one]), "what holds none is left out");
    assert_ne!(trust(&[&one]), trust(&[&two]));
    assert!(Tls::trusting(&[b"hello"], &accepted).is_err() && Tls::trusting(&[], &accepted).is_err());
    assert!(Tls::trusting(&[&one], &[]).is_err(), "nobody would be accepted");
    let [first, second] = accepted;
    assert_eq!(Tls::trusting(&[&one], &[second, first]).unwrap(), trust(&[&one]));
    assert_ne!(Tls::trusting(&[&one], &[first]).unwrap(), trust(&[&one]));
}

#[test]
fn a_fingerprint_is_what_openssl_computes_and_survives_being_written_and_read() {
    // printf abc | sha256sum
    let written = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let fingerprint = Fingerprint::of(b"abc");
    assert_eq!(fingerprint.to_string(), written);
    assert_eq!(written.parse(), Ok(fingerprint));
    for wrong in ["", "ba78", &written[1..], &written.replace('f', "g"), &"é".repeat(32)] {
        assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
    }
    let (pem, _) = issue(&authority("one"), |_| {});
    let der = rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    assert_eq!(Fingerprint::of_pem(pem.as_bytes()).unwrap(), Fingerprint::of(&der));
}
