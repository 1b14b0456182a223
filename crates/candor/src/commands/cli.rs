//! `candor cli`: the server's own client in the pod of a member, logged in.

use std::error::Error;
use std::io::{IsTerminal, Write, stdin, stdout};

use candor_api::ValkeyCluster;
use candor_api::valkey::status::MemberRole;
use candor_operator::objects::names;
use clap::Args;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{AttachedProcess, ListParams, TerminalSize};
use kube::{Api, ResourceExt};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};

use super::cluster::{Address, Object};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::exec::{Call, Input, READY};
use super::output::size;
use super::servers::{self, password};

/// A valkey-cli shell in the pod of a member, with the right credentials and TLS.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor cli shop                        a shell at the primary of the first shard
  candor cli shop --member 1-1           ... at this member
  candor cli shop --user app             ... as a user of the spec, with the password of its Secret
  candor cli shop -- get greeting        one command; redirections are followed
  candor cli shop -- cluster nodes")]
pub struct Cli {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// The member: shard and place, such as 0-1, or the ordinal of a `RedkeyCluster`'s pod.
    #[arg(long, value_name = "MEMBER", add = super::completion::members())]
    member: Option<String>,
    /// The user; by default the user `default`, or the first user of the spec if that user is disabled.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// One command instead of a shell.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    at: Connection,
}

impl Cli {
    /// Runs the client until it ends.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        let object = at.cluster(&cluster).await?;
        let pod = self.pod(&at, &object).await?;
        let call = self.call(&at, &object).await?;
        if self.command.is_empty() && stdin().is_terminal() && stdout().is_terminal() {
            let process = call.start_in_terminal(&at, object.kind(), &pod).await;
            return in_terminal(process.map_err(|error| CommandError::of(&error, "pod"))?, &call).await;
        }
        let process = call.start(&at, object.kind(), &pod).await;
        let (process, input) = process.map_err(|error| CommandError::of(&error, "pod"))?;
        piped(process, input.filter(|_| self.command.is_empty())).await
    }

    /// The pod of the member that is asked for, or of a ready primary.
    async fn pod(&self, at: &Connected, object: &Object) -> Result<String, CommandError> {
        let api: Api<Pod> = Api::namespaced(at.client.clone(), &at.namespace);
        let ours = ListParams::default().labels(&object.kind().member_selector(&object.name()));
        let pods = api
            .list(&ours)
            .await
            .map_err(|error| CommandError::of(&error, "pods"))?
            .items;
        let cluster = object.view_with(&[], &pods);
        let of = |pod: &Pod| object.kind().member_of(pod);
        let mut known: Vec<_> = pods.iter().filter_map(|pod| Some((of(pod)?, pod))).collect();
        known.sort_by_key(|(id, _)| *id);
        let is_primary = |id| {
            cluster
                .members
                .iter()
                .any(|one| one.id == id && one.role == Some(MemberRole::Primary))
        };
        let found = match &self.member {
            Some(name) => known.iter().find(|(id, _)| id.to_string() == *name),
            None => known.iter().find(|(id, _)| is_primary(*id)).or_else(|| known.first()),
        };
        found.map(|(_, pod)| pod.name_any()).ok_or_else(|| {
            let names: Vec<String> = known.iter().map(|(id, _)| id.to_string()).collect();
            CommandError::Usage(match &self.member {
                Some(name) => format!(
                    "there is no pod of member {name}; members with a pod: {}",
                    names.join(", ")
                ),
                None => "the cluster has no pods: candor status says why".to_owned(),
            })
        })
    }

    async fn call(&self, at: &Connected, object: &Object) -> Result<Call, CommandError> {
        let mut arguments = vec!["-c".to_owned()];
        arguments.extend(self.command.iter().cloned());
        let call = Call {
            arguments,
            ..Call::default()
        };
        let cluster = match object {
            Object::Valkey(cluster) => cluster,
            Object::Redkey(cluster) => {
                let password = servers::redkey_password(at, cluster)
                    .await
                    .map_err(CommandError::Usage)?;
                return Ok(Call { password, ..call });
            }
        };
        let tls = cluster
            .spec
            .networking
            .as_ref()
            .is_some_and(|network| network.tls.is_some());
        let user = self.user.clone().or_else(|| usual_user(cluster));
        let password = match &user {
            Some(user) => Some(password_of(at, cluster, user).await?),
            None => None,
        };
        Ok(Call {
            user,
            password,
            tls,
            ..call
        })
    }
}

/// The user to log in as: none where the user `default` needs no password.
fn usual_user(cluster: &ValkeyCluster) -> Option<String> {
    let users = &cluster.spec.users;
    let default = users.iter().find(|user| user.name == "default")?;
    if default.enabled != Some(false) {
        return (default.nopass != Some(true)).then(|| "default".to_owned());
    }
    let other = users
        .iter()
        .find(|user| user.name != "default" && user.enabled != Some(false));
    other.map(|user| user.name.clone())
}

/// The password of a user, from the Secret that the spec names.
async fn password_of(at: &Connected, cluster: &ValkeyCluster, user: &str) -> Result<String, CommandError> {
    let known = cluster.spec.users.iter().find(|one| one.name == user);
    let Some(known) = known else {
        let names: Vec<&str> = cluster.spec.users.iter().map(|user| user.name.as_str()).collect();
        let names = names.join(", ");
        return Err(CommandError::Usage(format!(
            "spec.users has no user {user}; it has: {names}"
        )));
    };
    let named = known.password_secret.clone().unwrap_or_default();
    let secret = named.name.unwrap_or_else(|| names::users_secret(&cluster.name_any()));
    let key = named.keys.first().cloned().unwrap_or_else(|| user.to_owned());
    let api: Api<Secret> = Api::namespaced(at.client.clone(), &at.namespace);
    let found = api
        .get(&secret)
        .await
        .map_err(|error| CommandError::of(&error, "Secret"))?;
    password(&found, &key)
        .ok_or_else(|| CommandError::Usage(format!("Secret {secret} has nothing under the key {key}")))
}

/// Copies standard input to the client, if it is to read it, and its output here.
async fn piped(mut process: AttachedProcess, input: Option<Input>) -> Result<(), Box<dyn Error>> {
    let feed = async {
        if let Some(mut input) = input {
            let _ = copy(&mut tokio::io::stdin(), &mut input).await;
            let _ = input.shutdown().await;
        }
    };
    let (out, err) = (process.stdout(), process.stderr());
    let print = async {
        if let Some(mut out) = out {
            let _ = copy(&mut out, &mut tokio::io::stdout()).await;
        }
    };
    let complain = async {
        if let Some(mut err) = err {
            let _ = copy(&mut err, &mut tokio::io::stderr()).await;
        }
    };
    tokio::select! {
        ((), ()) = async { futures::join!(print, complain) } => {}
        () = async { feed.await; std::future::pending().await } => {}
    }
    Ok(())
}

/// A terminal in raw mode, restored when dropped.
struct Raw(Termios);

impl Raw {
    fn new() -> Result<Self, Box<dyn Error>> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

async fn in_terminal(mut process: AttachedProcess, call: &Call) -> Result<(), Box<dyn Error>> {
    let (Some(mut input), Some(mut out)) = (process.stdin(), process.stdout()) else {
        return Err("the API server opened no terminal".into());
    };
    if let (Some(mut sizes), Some((columns, rows))) = (process.terminal_size(), size()) {
        let (width, height) = (u16::try_from(columns)?, u16::try_from(rows)?);
        let _ = futures::SinkExt::send(&mut sizes, TerminalSize { height, width }).await;
    }
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(READY) {
        match out.read(&mut buffer).await? {
            0 => return Err(String::from_utf8_lossy(&seen).trim().to_owned().into()),
            count => seen.extend(&buffer[..count]),
        }
    }
    input.write_all(call.unlock().as_bytes()).await?;
    let raw = Raw::new()?;
    let typed = async {
        let mut keys = tokio::io::stdin();
        let mut typed = [0; 1024];
        while let Ok(count @ 1..) = keys.read(&mut typed).await {
            if input.write_all(&typed[..count]).await.is_err() {
                return;
            }
        }
    };
    let printed = async {
        while let Ok(count @ 1..) = out.read(&mut buffer).await {
            let mut screen = stdout().lock();
            let _ = screen.write_all(&buffer[..count]);
            let _ = screen.flush();
        }
    };
    tokio::select! {
        () = printed => {}
        () = async { typed.await; std::future::pending().await } => {}
    }
    drop(raw);
    // A read of the terminal cannot be cancelled: the program ends without waiting for the next key.
    std::process::exit(0)
}
