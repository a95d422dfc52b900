//! The terminal screen of `esker top`.
//!
//! The library draws only what changed and notices a new size. The terminal is restored when the
//! screen is dropped, also after a panic.

use super::view::Section;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};
use ratatui::{DefaultTerminal, Frame};
use std::io;
use std::time::{Duration, Instant};

/// The width from which sections stand beside one another.
const TWO_COLUMNS: u16 = 100;

/// A terminal that belongs to this program as long as this exists.
pub struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If there is none.
    pub fn new() -> io::Result<Self> {
        Ok(Self(ratatui::try_init()?))
    }

    /// Draws the sections below the head.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&mut self, head: &str, sections: &[Section]) -> io::Result<()> {
        self.0.draw(|frame| draw(frame, head, sections)).map(|_| ())
    }

    /// Waits until `until`, or until something happened that needs a new drawing. True: the user
    /// asked for the end.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn wait(&mut self, until: Instant) -> io::Result<Happened> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if !event::poll(left)? {
                return Ok(Happened::Time);
            }
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(Happened::Quit),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(Happened::Quit);
                    }
                    _ => {}
                },
                Event::Resize(..) => return Ok(Happened::Resize),
                _ => {}
            }
            if left == Duration::ZERO {
                return Ok(Happened::Time);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// Its time is over.
    Time,
    /// The terminal has another size.
    Resize,
    /// The user asked for the end.
    Quit,
}

/// Draws into a frame: the head, then the sections, in two columns where there is room.
pub fn draw(frame: &mut Frame<'_>, head: &str, sections: &[Section]) {
    let [top, body] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(frame.area());
    let text = vec![Line::from(head.to_owned()), Line::from("q: quit")];
    frame.render_widget(Paragraph::new(text), top);
    // Wide sections come last and take the whole width.
    let narrow = sections.iter().take_while(|section| section.title != WIDE_FROM).count();
    let (narrow, wide) = sections.split_at(narrow);
    let columns = if body.width >= TWO_COLUMNS { 2 } else { 1 };
    let rows: Vec<&[Section]> = narrow.chunks(columns).chain(wide.chunks(1)).collect();
    let height = |row: &&[Section]| row.iter().map(|s| s.rows.len() + 2).max().unwrap_or(0);
    let heights = rows.iter().map(|row| Constraint::Length(height(row) as u16));
    let areas = Layout::vertical(heights.chain([Constraint::Min(0)])).split(body);
    for (row, area) in rows.iter().zip(areas.iter()) {
        let parts = vec![Constraint::Ratio(1, row.len() as u32); row.len()];
        let parts = Layout::horizontal(parts).split(*area);
        row.iter().zip(parts.iter()).for_each(|(section, area)| show(frame, section, *area));
    }
}

/// The title of the first section that takes the whole width.
const WIDE_FROM: &str = "keyspaces, the largest first";

fn show(frame: &mut Frame<'_>, section: &Section, area: Rect) {
    let lines: Vec<Line<'_>> = section.lines().into_iter().map(Line::from).collect();
    let block = Block::bordered().title(section.title);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
