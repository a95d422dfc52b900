//! `esker inspect`: prints one file of a database field by field.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;

/// Prints any file of a database field by field, without opening the database
#[derive(Debug, Args)]
#[command(after_help = "Lines are `FIELD VALUE`.\n\nExample:\n  esker inspect DIR/superblock-A")]
pub struct InspectArgs {
    /// The file
    file: PathBuf,
    /// Print one JSON object whose names are the fields
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &InspectArgs, out: &mut impl Write) -> Result<(), Failure> {
    let fields = esker::internals::inspect::file(&args.file)?;
    if args.json {
        let fields: Map<String, Value> =
            fields.into_iter().map(|(field, value)| (field, json_of(value))).collect();
        output::json_line(out, &Value::Object(fields))?;
        return Ok(());
    }
    let width = fields.iter().map(|(field, _)| field.len()).max().unwrap_or(0);
    for (field, value) in fields {
        writeln!(out, "{field:<width$} {value}")?;
    }
    Ok(())
}

/// A value as JSON. Numbers are decimal; identifiers and checksums are longer, or begin with `0x`.
fn json_of(value: String) -> Value {
    match (value.parse::<u64>(), value.parse::<bool>()) {
        (Ok(number), _) if number.to_string() == value => number.into(),
        (_, Ok(truth)) => truth.into(),
        _ => Value::String(value),
    }
}
