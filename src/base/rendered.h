// Text files that the executable carries, and templates (Mustache) filled in from JSON.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warploom {
// A file that the executable carries as text; cmake/Embed.cmake writes them into it.
struct EmbeddedFile {
  std::string path;  // relative to its folder: "ptx/mbarrier.h"
  std::string text;
};

// The headers under device/, which emitted kernels include and bundles contain.
const std::vector<EmbeddedFile>& device_headers();
// The files under resources/: fixed parts of bundles and reference kernels, templates of kernels,
// the archive's schema.
const std::vector<EmbeddedFile>& resources();

inline const std::string& resource(std::string_view path) {
  return std::ranges::find(resources(), path, &EmbeddedFile::path)->text;
}

// Fills in a Mustache template: {{name}}, {{best.us}}; {{#list}}…{{/list}} once for every element
// (or if a value is true); {{^list}}…{{/list}} if there is none; {{>part}} for a text of the record
// that is itself a template. A section that opens at the end of a line and closes at the end of
// another leaves no empty line if it is left out. A comment tag writes nothing and may contain a
// line end: templates break long lines by {{! at the end of one and }} at the start of the next.
//
//   rendered("{{#args}}{{name}}, {{/args}}stream", {{"args", {{{"name", "x"}}, {{"name", "y"}}}}})
//   is "x, y, stream"
//
// A form is a function of a section's text: {{#form}}…{{/form}} is what it returns.
using Form = std::function<std::string(const std::string&)>;
using Forms = std::map<std::string, Form>;
std::string rendered(const std::string& text, const nlohmann::json& record,
                     const Forms& forms = {});
// The same for HTML: values are escaped, except in triple braces {{{name}}}.
std::string rendered_html(const std::string& text, const nlohmann::json& record,
                          const Forms& forms);
std::string escaped(const std::string& text);  // for HTML text and quoted attributes

// A time in microseconds for people: "812.0 us", "1.24 ms"; "–" if it is unknown (0).
std::string time_text(double us);

// A JSON value for people: four significant digits of a fraction; "–" for null.
std::string words(const nlohmann::json& value);
}  // namespace warploom
