//! `esker serve-metrics`: the metrics of a database over HTTP, for Prometheus and what reads its
//! format.
//!
//! Each request reads the file in which the process that has the database open writes its
//! statistics. Nothing is opened for writing, and no lock is taken, so the database may be closed,
//! opened and removed meanwhile. A request costs one reading of at most 64 KiB; its body is not
//! read. One thread answers, one request after the other.

use crate::ctrl_c;
use crate::failure::Failure;
use crate::live::openmetrics;
use crate::output;
use clap::Args;
use esker::Observed;
use esker_bench::Interrupt;
use serde_json::json;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tiny_http::{Header, Method, Request, Response, Server};

/// Serves the metrics of a database that another process has open over HTTP
#[derive(Debug, Args)]
#[command(after_help = "The metrics are at `/metrics`, in OpenMetrics. `esker_up` is 1 while a \
    process has the database open; otherwise it is 0 and there are no other figures. Whoever \
    reaches the address can read them, so the default is this machine alone.\n\nExample:\n  \
    esker serve-metrics DIR --listen 127.0.0.1:9464")]
pub struct ServeMetricsArgs {
    /// The database's directory
    dir: PathBuf,
    /// The address and port; port 0: any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    /// Print the address of the metrics as JSON
    #[arg(long)]
    json: bool,
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Runs the command.
pub fn run(args: &ServeMetricsArgs, out: &mut impl Write) -> Result<(), Failure> {
    let server = Server::http(args.listen).map_err(|error| {
        let address = args.listen;
        Failure::Negative(format!("cannot listen on {address}: {error}: give another --listen"))
    })?;
    let (server, interrupt) = (Arc::new(server), Interrupt::default());
    let asked = server.clone();
    ctrl_c::listen(&interrupt, move || asked.unblock())
        .map_err(|error| Failure::Negative(error.to_string()))?;
    let url = format!("http://{}/metrics", server.server_addr());
    if args.json {
        output::json_line(out, &json!({ "url": url }))?;
    } else {
        writeln!(out, "{url}")?;
    }
    out.flush()?;
    while !interrupt.asked() {
        // Interrupted waits return without a request.
        let Ok(request) = server.recv() else { continue };
        answer(&args.dir, request);
    }
    Ok(())
}

/// Answers one request. A client that is gone needs no answer.
fn answer(directory: &Path, request: Request) {
    let path = request.url().split('?').next().unwrap_or_default();
    let reads = matches!(request.method(), Method::Get | Method::Head);
    let (status, kind, text) = match path {
        _ if !reads => (405, PLAIN, "only GET and HEAD are answered\n".to_owned()),
        "/metrics" => {
            (200, OPENMETRICS, openmetrics::text(Observed::read(directory).ok().as_ref()))
        }
        "/" => (200, PLAIN, "metrics of an Esker database: /metrics\n".to_owned()),
        _ => (404, PLAIN, "there is only /metrics\n".to_owned()),
    };
    let mut response = Response::from_string(text).with_status_code(status);
    for (name, value) in [("Content-Type", kind), ("Cache-Control", "no-store")] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response = response.with_header(header);
        }
    }
    if status == 405
        && let Ok(header) = Header::from_bytes("Allow", "GET, HEAD")
    {
        response = response.with_header(header);
    }
    let _ = request.respond(response);
}
