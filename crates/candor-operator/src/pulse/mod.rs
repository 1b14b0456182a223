//! One light connection per member, and what it tells between two looks.
