//! `esker completions`: prints what a shell of the system needs to complete the program's arguments.

use crate::failure::Failure;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;

/// Prints a script that makes a shell complete the arguments of esker
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  esker completions bash > \
    ~/.local/share/bash-completion/completions/esker\n  \
    esker completions fish > ~/.config/fish/completions/esker.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command; `program` is the definition of the command line.
pub fn run(
    args: &CompletionsArgs,
    mut program: Command,
    out: &mut impl Write,
) -> Result<(), Failure> {
    // The generator takes no failure of its output, so that is not where it writes.
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    out.write_all(&script)?;
    Ok(())
}
