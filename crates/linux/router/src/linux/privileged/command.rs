//! Last step before COMMAND: its process group, terminal, standard streams and environment.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::getpid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::linux::privileged::inside::give_terminal;
use crate::linux::privileged::own_channel;

/// Program to execute. No privileged process reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Complete environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl Spec {
    /// Writes it to an anonymous file in memory.
    ///
    /// # Errors
    /// Those of the kernel; `InvalidInput` if a string contains a zero byte.
    pub fn to_file(&self) -> io::Result<OwnedFd> {
        let mut bytes = Vec::new();
        let mut put = |text: &OsStr| {
            if text.as_bytes().contains(&0) {
                return Err(io::Error::from(ErrorKind::InvalidInput));
            }
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
            Ok(())
        };
        put(OsStr::new(&self.command.len().to_string()))?;
        for word in &self.command {
            put(word)?;
        }
        for (name, value) in &self.environment {
            put(name)?;
            put(value)?;
        }
        let mut file = File::from(memfd_create("cwnd-command", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        Ok(file.into())
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// Those of the kernel; `InvalidData` if the file has another format.
    pub fn of_file(file: OwnedFd) -> io::Result<Self> {
        let mut file = File::from(file);
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        let mut words =
            bytes.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec()));
        let mut next = || words.next().ok_or(ErrorKind::InvalidData);
        let count = next()?.to_str().and_then(|count| count.parse().ok());
        let count: usize = count.ok_or(ErrorKind::InvalidData)?;
        let command = (0..count).map(|_| next()).collect::<Result<_, _>>()?;
        let mut environment = Vec::new();
        while let Ok(name) = next() {
            // The last string is followed by a zero byte, hence by an empty string.
            let Ok(value) = next() else { break };
            environment.push((name, value));
        }
        Ok(Self { command, environment })
    }
}

/// Executes COMMAND in place of this process. If that fails, prints the reason and returns the exit
/// code as a shell does.
pub fn become_command() -> io::Result<u8> {
    let message = own_channel()?.receive()?.ok_or(ErrorKind::UnexpectedEof)?;
    let mut descriptors = message.descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(ErrorKind::InvalidData);
    let spec = Spec::of_file(next()?)?;
    let stdio = [next()?, next()?, next()?];
    if let Ok(terminal) = next() {
        give_terminal(&terminal, getpid())?;
    }
    dup2_stdin(&stdio[0])?;
    dup2_stdout(&stdio[1])?;
    dup2_stderr(&stdio[2])?;
    drop(stdio);
    // COMMAND's parent blocks the signal by which it waits for children, and blocked signals are
    // inherited.
    SigSet::all().thread_unblock()?;
    let [program, arguments @ ..] = &spec.command[..] else {
        return Err(ErrorKind::InvalidData.into());
    };
    let error = Command::new(program).args(arguments).env_clear().envs(spec.environment).exec();
    let text = error.to_string();
    let (code, reason) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "command not found".to_owned()),
        _ => (NOT_EXECUTABLE, text.split(" (os error").next().unwrap_or_default().to_lowercase()),
    };
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "cwnd link: {}: {reason}", program.display());
    Ok(code)
}

/// Exit codes of shells for a command that does not exist or cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_executed_comes_out_of_its_file_as_it_went_in() {
        let spec = Spec {
            command: ["sh", "", "-c", "exit 7\n"].map(OsString::from).to_vec(),
            environment: vec![("A".into(), "".into()), ("B".into(), "x=y".into())],
        };
        assert_eq!(Spec::of_file(spec.to_file().expect("memory")).expect("as written"), spec);
        let zero = Spec { command: vec!["a\0b".into()], environment: Vec::new() };
        assert!(zero.to_file().is_err());
    }
}
