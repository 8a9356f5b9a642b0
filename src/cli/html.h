// A page from a record: its template, tables, a plain picture, all of it readable without scripts. resources/report/report.js makes the
// tables sort and puts pictures that answer to pointer and keyboard in the place of the plain ones.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
namespace warploom::cli {
// What lies at `path` ("/verdict/error") of a record that may lack it, or hold something of another kind there.
std::string text_at(const nlohmann::json& record, const char* path);
double number_at(const nlohmann::json& record, const char* path);
const nlohmann::json& list_at(const nlohmann::json& record, const char* path);

// A table of resources/report/tables.json, a record a row; "" where there are none. A heading that ends in % has bars.
std::string table(const std::string& name, const nlohmann::json& records);

// resources/report/report.html filled in (base/rendered.h). {{#time}}, {{#percent}} and {{#ratio}} write a number of microseconds, a share and
// a number of times (– for none) as people read them.
std::string report_page(const nlohmann::json& record);

// Marks and lines over two axes, y logarithmic. Classes are those of report.css; a mark's text shows where the pointer rests.
struct Plot {
  struct Mark {
    double x, y;
    std::string css, text;
  };
  using Line = std::vector<std::pair<double, double>>;
  std::string title, x, y, css;
  bool log_x = false;
  std::vector<Mark> marks = {};
  std::vector<std::pair<std::string, Line>> lines = {};  // class, corners
};
std::string scatter(const Plot& plot);  // a figure of class `css`
}  // namespace warploom::cli
