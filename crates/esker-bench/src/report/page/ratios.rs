//! Pictures of ratios: a row for each engine, on a logarithmic axis around 1.
//!
//! All pictures of a section share one [`Scale`], so they can be compared by eye. Its length is
//! limited: one extreme ratio would push all others together around 1. What lies beyond its ends stands
//! beside them, with an arrow. The shape of a mark says who is ahead, and the row says it in words: no
//! reader needs the colours.

use super::chart::{
    Area, GRID, INK, PAPER, Picture, TEXT, WIDTH, colour, failed, headline, picture, stacked,
    whisker,
};
use super::error::PageError;
use super::figure::{Mark, Verdict};
use super::words;
use plotters::prelude::{
    Circle, Color, IntoFont, PathElement, Polygon, Rectangle, ShapeStyle, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

const ROW_HEIGHT: u32 = 88;
const AXIS_HEIGHT: u32 = 40;
/// Where the band of a row begins and ends.
const BAND: (i32, i32) = (42, 80);
/// Room for one half of a label at either end of the axis.
const MARGIN: i32 = 56;
/// Half the width of a mark.
const MARK: i32 = 15;
/// The axis reaches at most to this ratio, and to one by it.
const RATIO_MAX: f64 = 20.0;
/// More labels at 1, 2 and 5 would run into each other; then there are only those at powers of ten.
const FINE_TICKS_MAX: usize = 7;

/// A row of a picture.
pub struct Row<'a> {
    /// Whose it is.
    pub label: &'a str,
    /// The engine's column.
    pub series: usize,
    /// How the comparison ended.
    pub verdict: Verdict,
}

impl Row<'_> {
    /// The ratio, if the two did the same work.
    fn ratio(&self) -> Option<f64> {
        self.verdict.ratio.filter(|_| self.verdict.mark != Mark::Unlike)
    }

    /// Sign, ratio and word: what a reader needs besides the drawing.
    pub fn text(&self) -> String {
        let ratio = self.ratio().map_or(String::new(), |ratio| words::ratio(ratio) + " ");
        format!("{} {ratio}{}", self.verdict.mark.sign(), self.verdict.mark.word())
    }
}

/// A logarithmic axis.
pub struct Scale {
    /// The logarithm of its lower end.
    low: f64,
    /// The logarithm of its upper end.
    high: f64,
    /// Logarithms of the ratios with a label.
    ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Wide enough for these comparisons, and at least from a half to two.
    pub fn over(verdicts: impl Iterator<Item = Verdict>) -> Self {
        let (mut low, mut high) = (0.5_f64, 2.0_f64);
        for verdict in verdicts.filter(|verdict| verdict.mark != Mark::Unlike) {
            for ratio in [verdict.ratio.unwrap_or(1.0), verdict.range.0, verdict.range.1] {
                if ratio.is_finite() && ratio > 0.0 {
                    (low, high) = (low.min(ratio), high.max(ratio));
                }
            }
        }
        let (low, high) = (low.max(1.0 / RATIO_MAX).log10(), high.min(RATIO_MAX).log10());
        let within = |tick: &(f64, String)| tick.0 >= low - 1e-9 && tick.0 <= high + 1e-9;
        let ticks = |digits: &[u32]| -> Vec<(f64, String)> {
            let all = (-2..=2).flat_map(|e| digits.iter().map(move |digit| tick(*digit, e)));
            all.filter(within).collect()
        };
        let fine = ticks(&[1, 2, 5]);
        let ticks = if fine.len() <= FINE_TICKS_MAX { fine } else { ticks(&[1]) };
        Self { low, high, ticks }
    }

    /// Where a ratio's logarithm stands in a picture: below zero if it is left of the axis, above zero
    /// if right of it, and the place on the axis.
    fn place(&self, logarithm: f64) -> (i32, i32) {
        let beyond =
            i32::from(logarithm > self.high + 1e-9) - i32::from(logarithm < self.low - 1e-9);
        let share = (logarithm.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        (beyond, MARGIN + (share * f64::from(WIDTH as i32 - 2 * MARGIN)).round() as i32)
    }
}

/// The place and the label of a digit times a power of ten.
fn tick(digit: u32, exponent: i32) -> (f64, String) {
    let value = f64::from(digit) * 10_f64.powi(exponent);
    let label = match exponent {
        0.. => words::short(value),
        below => format!("{value:.0$}", below.unsigned_abs() as usize),
    };
    (value.log10(), label + "×")
}

/// Draws a row for each comparison, and the axis below them.
pub fn panel(rows: &[Row<'_>], scale: &Scale) -> Result<Picture, PageError> {
    let mut parts = Vec::new();
    for row in rows {
        parts.push((Some(row.series), picture(ROW_HEIGHT, |root| one_row(root, row, scale))?));
    }
    parts.push((None, picture(AXIS_HEIGHT, |root| axis(root, scale))?));
    Ok(stacked(&parts))
}

fn one_row(root: &Area<'_>, row: &Row<'_>, scale: &Scale) -> Result<(), PageError> {
    headline(root, row.label, &row.text(), false)?;
    let band = [(2, BAND.0), (WIDTH as i32 - 6, BAND.1)];
    root.draw(&Rectangle::new(band, GRID.mix(0.35).filled())).map_err(failed)?;
    for (at, _) in &scale.ticks {
        let (colour, width) = if *at == 0.0 { (INK, 4) } else { (GRID, 2) };
        let x = scale.place(*at).1;
        let style = ShapeStyle::from(colour).stroke_width(width);
        root.draw(&PathElement::new([(x, BAND.0), (x, BAND.1)], style)).map_err(failed)?;
    }
    let Some(ratio) = row.ratio() else { return Ok(()) };
    let middle = (BAND.0 + BAND.1) / 2;
    let range = [row.verdict.range.0, row.verdict.range.1].map(|end| scale.place(end.log10()));
    if row.verdict.mark != Mark::Once && (range[0].0 == 0 || range[0].0 != range[1].0) {
        // An end beyond the axis runs out of the band.
        let ends = range.map(|(beyond, place)| match beyond {
            0 => place,
            beyond => {
                if beyond < 0 {
                    band[0].0
                } else {
                    band[1].0
                }
            }
        });
        whisker(root, (ends[0], ends[1]), middle)?;
    }
    let (beyond, place) = scale.place(ratio.log10());
    if beyond != 0 {
        let (tip, tail) = (place + 12 * beyond, place + 2 * beyond);
        let arrow = [(tail, middle - 10), (tip, middle), (tail, middle + 10)];
        let style = ShapeStyle::from(INK).stroke_width(4);
        root.draw(&PathElement::new(arrow, style)).map_err(failed)?;
    }
    mark(root, row, (place + 30 * beyond, middle))
}

/// A triangle that points up for a win and down for a loss, a square for a tie, a ring where there
/// was one round.
fn mark(root: &Area<'_>, row: &Row<'_>, (x, y): (i32, i32)) -> Result<(), PageError> {
    let corners = |size: i32| match row.verdict.mark {
        Mark::Win => vec![(x - size, y + size), (x + size, y + size), (x, y - size)],
        Mark::Loss => vec![(x - size, y - size), (x + size, y - size), (x, y + size)],
        _ => vec![
            (x - size, y - size),
            (x + size, y - size),
            (x + size, y + size),
            (x - size, y + size),
        ],
    };
    let filled = colour(row.series).filled();
    if row.verdict.mark == Mark::Once {
        root.draw(&Circle::new((x, y), MARK, filled)).map_err(failed)?;
        return root.draw(&Circle::new((x, y), MARK - 7, PAPER.filled())).map_err(failed);
    }
    // A rim keeps the mark apart from its whisker.
    root.draw(&Polygon::new(corners(MARK + 4), PAPER.filled())).map_err(failed)?;
    root.draw(&Polygon::new(corners(MARK), filled)).map_err(failed)
}

fn axis(root: &Area<'_>, scale: &Scale) -> Result<(), PageError> {
    let centred = Pos::new(HPos::Center, VPos::Top);
    let font = TextStyle::from(TEXT.into_font()).color(&INK).pos(centred);
    for (at, label) in &scale.ticks {
        let text = Text::new(label.clone(), (scale.place(*at).1, 4), font.clone());
        root.draw(&text).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ratio: f64, range: (f64, f64), mark: Mark) -> Verdict {
        Verdict { ratio: Some(ratio), range, mark }
    }

    fn labels(verdicts: &[Verdict]) -> Vec<String> {
        Scale::over(verdicts.iter().copied()).ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn the_axis_has_1_and_room_for_every_whisker() {
        assert_eq!(labels(&[]), ["0.5×", "1×", "2×"]);
        let wide = verdict(3.0, (0.3, 20.0), Mark::Tie);
        assert_eq!(labels(&[wide]), ["0.5×", "1×", "2×", "5×", "10×", "20×"]);
        let extreme = verdict(0.004, (0.002, 900.0), Mark::Loss);
        assert_eq!(labels(&[extreme]), ["0.1×", "1×", "10×"]);
        let endless = verdict(1e5, (0.0, f64::INFINITY), Mark::Tie);
        assert_eq!(labels(&[endless, verdict(1.0, (f64::NAN, 1.0), Mark::Tie)]).len(), 6);
        // What is not compared needs no room.
        assert_eq!(labels(&[verdict(900.0, (900.0, 900.0), Mark::Unlike)]), ["0.5×", "1×", "2×"]);
        let scale = Scale::over([wide].into_iter());
        let places = [0.3_f64, 20.0, 0.0, 30.0].map(|ratio| scale.place(ratio.log10()));
        assert_eq!(places, [(0, 56), (0, 824), (-1, 56), (1, 824)]);
    }

    #[test]
    fn what_is_beyond_the_axis_has_an_arrow() {
        let drawn = |ratio: f64, range| {
            let row = Row { label: "x", series: 1, verdict: verdict(ratio, range, Mark::Win) };
            let scale = Scale::over([row.verdict].into_iter());
            panel(&[row], &scale).unwrap().content
        };
        let arrow = "points=\"826,51 836,61 826,71 \"";
        let far = drawn(900.0, (800.0, 1000.0));
        assert!(far.contains(arrow) && far.contains("▲ 900× win"), "{far}");
        assert!(!far.contains("stroke-width=\"9\""), "its whisker is beyond the axis, too");
        let near = drawn(15.0, (10.0, 1000.0));
        assert!(!near.contains(arrow) && near.contains(",61 874,61 "), "{near}");
        assert!(drawn(0.001, (0.0005, 0.1)).contains("points=\"54,51 44,61 54,71 \""));
    }

    #[test]
    fn shape_and_words_tell_the_outcome_without_colour() {
        let drawn = |mark| {
            let row = Row { label: "x", series: 1, verdict: verdict(2.0, (1.5, 2.5), mark) };
            panel(&[row], &Scale::over([].into_iter())).unwrap().content
        };
        let points = |content: &str| content.matches(',').count();
        let shapes = [Mark::Win, Mark::Loss, Mark::Tie, Mark::Once].map(drawn);
        for (shape, text) in shapes.iter().zip(["▲ 2.00× win", "▼ 2.00× loss", "= 2.00× tie"])
        {
            assert!(shape.contains(text), "{shape}");
            assert_eq!(shape.matches("<polygon").count(), 2);
        }
        assert_ne!(shapes[0].split("<polygon").nth(1), shapes[1].split("<polygon").nth(1));
        assert!(points(&shapes[2]) > points(&shapes[0]), "a square has a corner more");
        assert!(shapes[3].contains("<circle") && !shapes[3].contains("<polygon"));
        let unlike = drawn(Mark::Unlike);
        assert!(unlike.contains("≠ other work") && !unlike.contains("2.00×"), "{unlike}");
        assert!(!unlike.contains("<polygon") && !unlike.contains("<circle"));
    }
}
