//! The program, as its users run it: each module asks it for something, and reads the answers.
//!
//! One program, because each that is linked by itself takes longer to link than to run.
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod bad_input;
mod bench_report;
mod branch_flag;
mod closed_pipe;
mod command_line_page;
mod commands;
mod compare;
mod damage;
mod dump_load;
mod events_command;
mod experiment;
mod import;
mod json;
mod kill_loop;
mod live;
mod measuring_commands;
mod published_experiments;
mod repair;
mod shell_protocol;
mod shell_read_only;
mod shell_scripts;
mod shown_commands;
mod support;
#[cfg(unix)]
mod terminal;
