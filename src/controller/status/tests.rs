mod due;
mod status_report;
