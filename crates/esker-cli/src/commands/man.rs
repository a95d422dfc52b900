//! `esker man`: prints the manual pages of the program, which are its help.

use crate::failure::Failure;
use clap::{Args, Command};
use clap_mangen::Man;
use std::io::Write;

/// Prints a manual page, of the program or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  esker man > esker.1\n  esker man put > esker-put.1\n  \
    esker man bench compare > esker-bench-compare.1")]
pub struct ManArgs {
    /// The command; none: the program
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command; `program` is the definition of the command line.
pub fn run(args: &ManArgs, mut program: Command, out: &mut impl Write) -> Result<(), Failure> {
    // What follows from the definition: full names, and flags that commands have from above.
    program.build();
    let mut page = &program;
    for name in &args.command {
        page = page.find_subcommand(name).ok_or_else(|| {
            let all = args.command.join(" ");
            Failure::Usage(format!("there is no command {all:?}: `esker --help` lists them"))
        })?;
    }
    Man::new(page.clone()).render(out)?;
    Ok(())
}
