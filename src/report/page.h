// One page of what a search did (docs/report.md): a template filled in with figures, tables and
// plain pictures, all of it readable without scripts. resources/report/report.js makes the tables
// sort and draws the pictures again so that they answer to pointer and keyboard.
//
//   Facts facts{.title = "matmul_small", .plan = plan};
//   facts.histories.push_back(*history_of(archive, problem));
//   write_file("report.html", page_of(facts));
//
// Only what is named here of a record gets onto the page, and only as text: names of candidates,
// tensors and devices are nobody's markup.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace warploom::report {
struct Facts {
  std::string title;
  std::string headline;      // the outcome in one sentence; "" where nobody says it
  std::string version;       // of the program that writes the page
  nlohmann::json plan = {};  // the bundle's plan.json; null without one
  nlohmann::json histories = nlohmann::json::array();  // as history_of() gives them
  // Rows of the table of regions: the plan's, with "operations", "bytes", "intensity", "tflops",
  // "gbs", "bound", "part" where they are known.
  nlohmann::json regions = nlohmann::json::array();
  // The target's rates {"gbs", "tflops", "cache_bytes"}; null: there is no roofline.
  nlohmann::json roofs = {};
  // {"name", "region", "text", "notes", "tables", "layouts"}, of each tile program.
  nlohmann::json programs = nlohmann::json::array();
  nlohmann::json notes = nlohmann::json::array();  // what is missing and why
};

std::string page_of(Facts facts);
}  // namespace warploom::report
