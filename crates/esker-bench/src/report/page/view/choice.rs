//! The choice of engines to show.
//!
//! Boxes to tick, one for each engine. They need the page's script, which shows them first: without it
//! there is no control that does nothing.

use super::parts::Place;
use crate::report::page::chart::{code, colour};
use crate::report::page::group::Group;
use maud::{Markup, html};

/// The boxes; nothing where there is one engine.
pub fn boxes(place: &Place, group: &Group) -> Markup {
    html! {
        @if group.compares() {
            fieldset.choice hidden {
                legend { "Engines shown" }
                @for (column, engine) in group.columns.iter().enumerate() {
                    @let id = place.id(&format!("show{column}"));
                    label for=(id) {
                        input type="checkbox" id=(id) value=(engine.label) data-of=(column) checked;
                        svg viewBox="0 0 12 12" aria-hidden="true" focusable="false" {
                            rect width="12" height="12" fill=(code(colour(column))) {}
                        }
                        (engine.label)
                    }
                }
                p.note {
                    "Pictures and tables hide an engine that is not ticked. Axes stay as they are, \
                     and sentences that count or name engines are about all of them."
                }
            }
        }
    }
}
