//! Pictures: bars with their spread, and lines.
//!
//! A picture is drawn twice as wide as the page shows it, and the page shows it no wider than a
//! telephone's screen, so its text stays legible there. Colours are names: the style sheet finds an
//! attribute by its value and gives each colour another value in dark mode, and each line its own
//! pattern of dashes. Text that comes from a file is escaped by the plotting library.
//!
//! Whatever belongs to one engine is drawn by itself and put into an element that has the engine's
//! column as an attribute, because the plotting library has no groups. So the page's script can hide
//! it.

use super::error::PageError;
use super::figure::Spread;
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::{
    ChartBuilder, Circle, Color, DrawingArea, FontStyle, IntoDrawingArea, IntoFont, LineSeries,
    PathElement, RGBColor, Rectangle, SVGBackend, ShapeStyle, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write as _;
use std::ops::Range;

/// Units of a picture's width.
pub const WIDTH: u32 = 880;
const LINES_HEIGHT: u32 = 560;
const BAR_HEIGHT: u32 = 92;
/// Letters of a name and a figure that fit side by side in a bold wide font.
const LETTERS: usize = 42;
/// The font of pictures. The library makes text smaller than asked for by a quarter.
pub const TEXT: (&str, u32) = ("sans-serif", 36);

/// The colours of series. The style sheet knows them by these values.
pub const COLOURS: [RGBColor; 10] = [
    RGBColor(0x00, 0x5F, 0xB8),
    RGBColor(0xC2, 0x50, 0x00),
    RGBColor(0x00, 0x7D, 0x58),
    RGBColor(0xA2, 0x3B, 0x86),
    RGBColor(0x85, 0x67, 0x00),
    RGBColor(0x4B, 0x49, 0xB5),
    RGBColor(0xC0, 0x1F, 0x4F),
    RGBColor(0x00, 0x7A, 0x87),
    RGBColor(0x7A, 0x52, 0x3F),
    RGBColor(0x5A, 0x64, 0x70),
];
/// What text and whiskers are drawn in.
pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// What keeps a whisker apart from its bar.
pub const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
/// What grids are drawn in.
pub const GRID: RGBColor = RGBColor(0xD0, 0xD0, 0xD0);

/// What a picture is drawn on.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The same with axes.
type Plane<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

/// A drawn picture: what stands between the tags of an `svg` element.
#[derive(Debug, Clone)]
pub struct Picture {
    /// Units of its height.
    pub height: u32,
    /// The markup.
    pub content: String,
}

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar<'a> {
    /// Whose it is.
    pub label: &'a str,
    /// Which colour it has.
    pub series: usize,
    /// How long it is.
    pub spread: Spread,
    /// The figure at its end, as text.
    pub text: String,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it measures.
    pub name: &'static str,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The places with a label.
    pub ticks: Vec<(f64, String)>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light lines would stand between those with a label; there are none.
        let light = hint.weight().allow_light_points();
        let ticks = self.ticks.iter().filter(|_| !light);
        ticks.map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(place, _)| place == value);
        tick.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Which colour it has.
    pub series: usize,
    /// Whether it is drawn in the background.
    pub faint: bool,
    /// Whether its points are marked.
    pub marked: bool,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// The colour of a series.
pub fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}

/// A colour as pictures and the style sheet write it.
pub fn code(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// An error of the plotting library.
pub fn failed(cause: impl std::fmt::Display) -> PageError {
    PageError::Drawing { cause: cause.to_string() }
}

/// Draws a picture.
pub fn picture(
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Result<(), PageError>,
) -> Result<Picture, PageError> {
    let mut drawing = String::new();
    {
        let root = SVGBackend::with_string(&mut drawing, (WIDTH, height)).into_drawing_area();
        draw(&root)?;
        root.present().map_err(failed)?;
    }
    // The page puts its own tag around, with a name and a description.
    let content = drawing.split_once('>').map_or("", |(_, content)| content);
    let content = content.trim_end().trim_end_matches("</svg>");
    Ok(Picture { height, content: content.to_owned() })
}

/// Pictures one below the other. Each is an element of its own with its height, and the column
/// that it belongs to if it belongs to one, so that those below can move up into its place.
pub fn stacked(rows: &[(Option<usize>, Picture)]) -> Picture {
    let mut whole = Picture { height: 0, content: String::new() };
    for (column, row) in rows {
        let column = column.map_or(String::new(), |column| format!(" data-column=\"{column}\""));
        let _ = writeln!(
            whole.content,
            "<g{column} data-height=\"{}\" transform=\"translate(0 {})\">{}</g>",
            row.height, whole.height, row.content
        );
        whole.height += row.height;
    }
    whole
}

/// Bars from zero, each with its whisker from the lowest to the highest.
pub fn bars(bars: &[Bar<'_>]) -> Result<Picture, PageError> {
    let longest = bars.iter().map(|bar| bar.spread.max).fold(f64::MIN_POSITIVE, f64::max);
    let rows = bars.iter().map(|bar| {
        Ok((Some(bar.series), picture(BAR_HEIGHT, |root| one_bar(root, bar, longest))?))
    });
    Ok(stacked(&rows.collect::<Result<Vec<_>, PageError>>()?))
}

fn one_bar(root: &Area<'_>, bar: &Bar<'_>, longest: f64) -> Result<(), PageError> {
    let place = |value: f64| 2 + (value / longest * f64::from(WIDTH - 8)) as i32;
    let (upper, lower) = (42, 74);
    headline(root, bar.label, &bar.text, bar.series == 0)?;
    let ground = [(2, upper), (WIDTH as i32 - 6, lower)];
    root.draw(&Rectangle::new(ground, GRID.mix(0.35).filled())).map_err(failed)?;
    let filled = colour(bar.series).filled();
    let drawn = Rectangle::new([(2, upper), (place(bar.spread.median), lower)], filled);
    root.draw(&drawn).map_err(failed)?;
    if bar.spread.rounds < 2 {
        return Ok(());
    }
    whisker(root, (place(bar.spread.min), place(bar.spread.max)), (upper + lower) / 2)
}

/// The line above a bar: a name at the left, a figure at the right.
pub fn headline(root: &Area<'_>, label: &str, text: &str, bold: bool) -> Result<(), PageError> {
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = || TextStyle::from(TEXT.into_font().style(style)).color(&INK);
    let right = font().pos(Pos::new(HPos::Right, VPos::Top));
    let label = shortened(label, LETTERS.saturating_sub(text.chars().count()));
    root.draw(&Text::new(label, (2, 4), font())).map_err(failed)?;
    root.draw(&Text::new(text.to_owned(), (WIDTH as i32 - 2, 4), right)).map_err(failed)
}

/// A whisker at a height, from one place to another.
pub fn whisker(root: &Area<'_>, ends: (i32, i32), middle: i32) -> Result<(), PageError> {
    for (colour, width) in [(PAPER, 9), (INK, 4)] {
        let style = ShapeStyle::from(colour).stroke_width(width);
        let line = [(ends.0, middle), (ends.1, middle)];
        root.draw(&PathElement::new(line, style)).map_err(failed)?;
        for end in [ends.0, ends.1] {
            let cap = [(end, middle - 11), (end, middle + 11)];
            root.draw(&PathElement::new(cap, style)).map_err(failed)?;
        }
    }
    Ok(())
}

/// A name that would run into the figure beside it, without its middle: versions and files, which
/// tell engines apart, stand at the end of their names.
fn shortened(label: &str, letters: usize) -> String {
    let count = label.chars().count();
    if count <= letters {
        return label.to_owned();
    }
    let kept = letters.saturating_sub(1);
    let (first, last) = (kept.div_ceil(2), kept / 2);
    label.chars().take(first).chain(['…']).chain(label.chars().skip(count - last)).collect()
}

/// Lines over two axes.
pub fn lines(x: &Axis, y: &Axis, lines: &[Line]) -> Result<Picture, PageError> {
    let mut whole = picture(LINES_HEIGHT, |root| {
        plane(root, x, y)?
            .configure_mesh()
            .label_style(TextStyle::from(TEXT.into_font()).color(&INK))
            .axis_desc_style(TextStyle::from(TEXT.into_font()).color(&INK))
            .x_desc(x.name)
            .y_desc(y.name)
            .axis_style(ShapeStyle::from(GRID).stroke_width(2))
            .bold_line_style(ShapeStyle::from(GRID).stroke_width(2))
            .draw()
            .map_err(failed)
    })?;
    // Faint lines first, ours last: on top.
    let order = |line: &&Line| (!line.faint, std::cmp::Reverse(line.series));
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by_key(order);
    for line in sorted {
        let drawn = picture(LINES_HEIGHT, |root| one_line(&mut plane(root, x, y)?, line))?;
        let _ = writeln!(whole.content, "<g data-column=\"{}\">{}</g>", line.series, drawn.content);
    }
    Ok(whole)
}

/// The plane of the axes, the same for the grid and for every line.
fn plane<'a>(root: &Area<'a>, x: &Axis, y: &Axis) -> Result<Plane<'a>, PageError> {
    ChartBuilder::on(root)
        .margin_top(16)
        .margin_right(64)
        .x_label_area_size(84)
        .y_label_area_size(118)
        .build_cartesian_2d(x.clone(), y.clone())
        .map_err(failed)
}

fn one_line(chart: &mut Plane<'_>, line: &Line) -> Result<(), PageError> {
    let points = || line.points.iter().copied();
    let strength = if line.faint { 0.35 } else { 1.0 };
    let width = if line.faint { 2 } else { 5 };
    let style = ShapeStyle::from(colour(line.series).mix(strength)).stroke_width(width);
    chart.draw_series(LineSeries::new(points(), style)).map_err(failed)?;
    if line.marked {
        let filled = colour(line.series).filled();
        let marks = points().map(|point| Circle::new(point, 7, filled));
        chart.draw_series(marks).map_err(failed)?;
    }
    Ok(())
}

/// Round places between zero and `high`, at most six of them.
pub fn round_ticks(high: f64) -> Vec<(f64, String)> {
    let rough = high / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let places =
        (0..=6).map(|i| f64::from(i) * step).take_while(|place| *place <= high * 1.000_001);
    places.map(|place| (place, super::words::short(place))).collect()
}

/// Whole powers of ten from `low` to `high`, both exponents, at most eight of them.
pub fn decades(low: i32, high: i32) -> Vec<(f64, String)> {
    let every = ((high - low) / 8 + 1) as usize;
    let exponents = (low..=high).step_by(every);
    exponents.map(|e| (f64::from(e), super::words::short(10_f64.powi(e)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let places = |high| round_ticks(high).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(places(10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(places(830_453.0), ["0", "200K", "400K", "600K", "800K"]);
        assert!(round_ticks(1e18).len() <= 7);
        assert!(decades(-3, 18).len() <= 8);
    }

    #[test]
    fn labels_are_escaped() {
        let spread = Spread { min: 1.0, median: 2.0, max: 3.0, rounds: 3 };
        let hostile = Bar { label: "<script>&\"", series: 0, spread, text: "</svg>".into() };
        let picture = bars(&[hostile]).unwrap();
        assert!(picture.content.contains("&lt;script&gt;&amp;"));
        assert!(!picture.content.contains("<script") && !picture.content.contains("</svg"));
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("RocksDB", 7), "RocksDB");
        assert_eq!(shortened("RocksDB (RocksDB 10.2.1)", 12), "RocksD….2.1)");
        assert_eq!(shortened("RocksDB", 0), "…");
    }

    #[test]
    fn every_bar_and_every_line_has_an_element_with_its_column() {
        let spread = Spread { min: 1.0, median: 2.0, max: 3.0, rounds: 3 };
        let bar = |series| Bar { label: "x", series, spread, text: "2".into() };
        let picture = bars(&[bar(0), bar(3)]).unwrap();
        assert_eq!(picture.height, 184);
        for row in [
            "<g data-column=\"0\" data-height=\"92\" transform=\"translate(0 0)\">",
            "<g data-column=\"3\" data-height=\"92\" transform=\"translate(0 92)\">",
        ] {
            assert!(picture.content.contains(row), "{row}");
        }
        let axis = Axis { name: "x", low: 0.0, high: 10.0, ticks: round_ticks(10.0) };
        let line = |series, faint| Line {
            series,
            faint,
            marked: false,
            points: vec![(1.0, 1.0), (2.0, 2.0)],
        };
        let picture =
            lines(&axis, &axis, &[line(0, false), line(1, false), line(1, true)]).unwrap();
        let order: Vec<&str> = picture.content.split("<g data-column=\"").skip(1).collect();
        assert_eq!(order.len(), 3);
        for (element, column) in order.iter().zip(["1", "1", "0"]) {
            assert!(element.starts_with(column), "ours is drawn last");
            assert_eq!(element.matches("<polyline").count(), 1, "its line alone");
        }
    }
}
