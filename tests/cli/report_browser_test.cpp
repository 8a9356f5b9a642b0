// Pages of `warploom report` in a headless browser: what they answer to, and how they look.
#include <fmt/format.h>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include "archive/archive.h"
#include "base/file.h"
#include "base/process.h"
#include "base/rendered.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "report_fixture.h"
#include "support/paths.h"

namespace warploom {
namespace {
// Clicks through the page as it stands and writes what came of it into the document.
constexpr std::string_view kClicks = R"(<script>
  const said = {};
  const one = what => document.querySelector(what);
  const all = what => [...document.querySelectorAll(what)];
  const click = what => (typeof what === 'string' ? one(what) : what)
    .dispatchEvent(new MouseEvent('click', { bubbles: true }));
  const press = (what, key) =>
    what.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  click('.candidates thead th:nth-child(4) button');
  const times = all('.candidates tbody td:nth-child(4)')
    .filter(cell => 'v' in cell.dataset).map(cell => Number(cell.dataset.v));
  said.sorted = times.length > 1 && times.every((value, i) => i === 0 || times[i - 1] <= value);
  said.unknown_last = all('.candidates tbody td:nth-child(4)').at(-1).textContent === '–';
  said.aria = one('.candidates th[aria-sort]')?.getAttribute('aria-sort') ?? '';
  one('details.kernel').open = false;
  click('details.kernel summary');
  said.kernel = one('details.kernel').open && one('details.kernel pre').textContent.length > 100;
  click('.refusals tbody button');
  said.filtered = all('.candidates tbody tr').filter(row => !row.hidden).length;
  click('figure.search .mark.promoted');
  said.panel = !one('#panel').hidden && one('#panel').textContent.includes('median');
  press(one('#panel'), 'Escape');
  said.closed = one('#panel').hidden;
  press(one('figure.search .mark[tabindex="0"]'), 'ArrowRight');
  press(document.activeElement, 'Enter');
  said.keyboard = !one('#panel').hidden && all('figure.search .mark[tabindex="0"]').length === 1;
  click('.candidates tbody tr.refused');
  said.refusal = one('#panel').textContent.includes('</' + 'script>');
  const at = { bubbles: true, clientX: 50, clientY: 50 };
  one('figure.search .mark:not(.refused)').dispatchEvent(new PointerEvent('pointermove', at));
  said.tip = one('#tip').textContent;
  said.lineage = all('.lineage .node').length;
  said.roof = all('figure.roofline .roof').length;
  said.steps = all('figure.search .so-far').length;
  said.intervals = all('figure.search .interval').length;
  document.documentElement.dataset.said = encodeURIComponent(JSON.stringify(said));
</script></body>)";

// Opens all that folds and looks for what does not fit, is cut, or can hardly be read.
constexpr std::string_view kMeasures = R"(<script>
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  const name = one => `${one.tagName}.${one.getAttribute('class') ?? ''}`.slice(0, 60);
  const scrolls = one => /auto|scroll/.test(getComputedStyle(one).overflowX);
  function wide() {
    const out = [];
    const page = document.documentElement;
    if (page.scrollWidth > innerWidth) out.push(`the page: ${page.scrollWidth} of ${innerWidth}`);
    for (const one of document.querySelectorAll('body *')) {
      const inline = getComputedStyle(one).display.startsWith('inline');
      if (one.closest('svg, script, [hidden]') || inline || scrolls(one)) continue;
      if (one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1)
        out.push(`${name(one)}: ${one.scrollWidth} of ${one.clientWidth}`);
    }
    return out;
  }
  function cut() {
    const out = [];
    for (const text of document.querySelectorAll('figure svg text')) {
      const inner = text.getBoundingClientRect();
      const outer = text.closest('svg').getBoundingClientRect();
      const fits = inner.left >= outer.left - 1 && inner.right <= outer.right + 1
        && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
      if (inner.width > 0 && !fits) out.push(text.textContent);
    }
    return out;
  }
  const rgba = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
  function groundOf(one) {
    for (let at = one; at; at = at.parentElement) {
      const ground = rgba(getComputedStyle(at).backgroundColor);
      if (ground.length === 3 || ground[3] === 1) return ground;
    }
    return [255, 255, 255];
  }
  function luminance(colour) {
    const [r, g, b] = colour.slice(0, 3).map(value => value / 255)
      .map(value => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function faint() {
    const out = new Set();
    for (const one of document.querySelectorAll('body *')) {
      const text = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
      if (!text || one.closest('script, style, [hidden], title')) continue;
      const style = getComputedStyle(one);
      const ink = luminance(rgba(one.closest('svg') ? style.fill : style.color));
      const ground = luminance(groundOf(one));
      const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
      if (contrast < 4.5) out.add(`${name(one)}: ${contrast.toFixed(2)}`);
    }
    return [...out];
  }
  setTimeout(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const found = { width: innerWidth, dark, wide: wide(), cut: cut(), faint: faint() };
    const to = parent.document.documentElement;  // of the page around this one
    to.dataset.said = encodeURIComponent(JSON.stringify(found));
  }, 500);
</script></body>)";

class Browser : public Report {
 protected:
  void SetUp() override {
    chromium = find_program("chromium").string();
    if (chromium.empty()) GTEST_SKIP() << "chromium is not installed";
  }

  // What a script at the end of the page said.
  json said_by(std::string_view script, bool dark = false) { return said_on(with(script), dark); }

  // The same where the page has this width: a window has none below 500 pixels, a frame has any.
  json said_within(int width, std::string_view script, bool dark) {
    return said_on(fmt::format("<!doctype html><html><body><iframe style=\"border: 0; width: {}px; "
                               "height: 900px\" srcdoc=\"{}\"></iframe></body></html>",
                               width, escaped(with(script))),
                   dark);
  }

  std::string with(std::string_view script) {
    std::string text = page();
    return text.replace(text.rfind("</body>"), 7, script);
  }

  json said_on(const std::string& text, bool dark) {
    write("looked_at.html", text);
    const auto ran = run_process(
        {chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--virtual-time-budget=4000",
         fmt::format("--blink-settings=preferredColorScheme={}", dark ? 0 : 1),
         "--window-size=1700,1000", "--user-data-dir=" + (scratch.path() / "profile").string(),
         "--dump-dom", "file://" + (scratch.path() / "looked_at.html").string()},
        {.time = std::chrono::seconds(100), .output_bytes = 64 << 20});
    EXPECT_TRUE(ran && ran->succeeded()) << ran->err;
    const std::string begin = "data-said=\"";
    const size_t from = ran->out.find(begin);
    EXPECT_NE(from, ran->out.npos) << ran->err << "a script of the page failed";
    if (from == ran->out.npos) return {};
    const size_t first = from + begin.size();
    return json::parse(decoded(ran->out.substr(first, ran->out.find('"', first) - first)));
  }

  // Candidates of a problem, every other one refused.
  static void record_candidates(archive::Archive& to, const std::string& key) {
    std::string parent;
    for (int i = 0; i < 30; ++i) {
      archive::Candidate one = good(
          key,
          fmt::format("matmul_mma block_m={} block_n=128 stages=4 {}", i, std::string(60, 'w')),
          900 - 15 * i);
      if (!parent.empty()) one.parents = {parent};
      parent = one.schedule;
      ASSERT_TRUE(to.record(one));
      ASSERT_TRUE(to.record(refusal(key, fmt::format("direct rows={}", i), parent)));
    }
  }

  // A plan of one region of that key, for a GPU.
  json gpu_plan(const std::string& key) {
    const std::string model = test::source_path("examples/matmul_bf16_4096.textproto");
    const json shown = run("show " + model + " --json --target sm_80 --what source");
    EXPECT_TRUE(shown.contains("launch_list")) << err;
    if (!shown.contains("launch_list")) return {};
    const auto schedule = kernels::config_from_text(shown["schedule"].get<std::string>());
    const json region = {{"name", "MatMul"},   {"times", 1},
                         {"key", key},         {"schedule", kernels::to_json(*schedule)},
                         {"best_us", 500},     {"reference", "cuBLASLt 13.0"},
                         {"reference_us", 470}};
    return {{"launch_list", shown["launch_list"]},
            {"problem", kHostile + std::string(120, 'p')},
            {"track", "bf16"},
            {"regions", {region}},
            {"best_us", 500},
            {"reference", "none"},
            {"reference_us", 0},
            {"roofline_fraction", 1.33},
            {"model", *read_file(model)}};
  }

  // A page of all kinds of parts: refused candidates with names that are markup, long schedules,
  // kernels and layouts of a GPU.
  void write_full_page() {
    const std::string key(32, 'a');
    archive::Archive to = archive();
    ASSERT_TRUE(to.add_problem({key, kHostile + std::string(80, 'x'), "bf16", "sm_80",
                                "a GPU of a rather long name", std::string(300, 'g')}));
    ASSERT_TRUE(to.begin_run({.problem = key,
                              .reference = "cuBLASLt 13.0",
                              .reference_us = 470,
                              .environment = std::string(120, 'e')}));
    ASSERT_NO_FATAL_FAILURE(record_candidates(to, key));
    write("plan.json", gpu_plan(key).dump());
    ASSERT_EQ(run("report plan.json --archive a.sqlite --json")["problems"], 1) << err << out;
  }

  std::string chromium;

 private:
  static std::string decoded(const std::string& said) {
    std::string out;
    for (size_t i = 0; i < said.size(); ++i) {
      if (said[i] != '%') {
        out += said[i];
        continue;
      }
      out += static_cast<char>(std::stoi(said.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    return out;
  }
};

TEST_F(Browser, APageSortsFiltersAndShowsCandidates) {
  search();
  const json all = said_by(kClicks);
  for (const char* key :
       {"sorted", "unknown_last", "kernel", "panel", "closed", "refusal", "keyboard"})
    EXPECT_EQ(all[key], true) << key << all.dump(1);
  EXPECT_EQ(all["aria"], "ascending");
  EXPECT_EQ(all["filtered"], 1);
  EXPECT_NE(all["tip"].get<std::string>().find("s"), std::string::npos) << all["tip"];
  EXPECT_GE(all["lineage"], 2);
  EXPECT_EQ(all["roof"], 1);
  EXPECT_EQ(all["steps"], 1);
  EXPECT_GE(all["intervals"], 2);
}

TEST_F(Browser, NothingIsCutOrFaintAtAnyWidthInEitherScheme) {
  write_full_page();
  for (const int width : {400, 800, 1200, 1600})
    for (const bool dark : {false, true}) {
      const json found = said_within(width, kMeasures, dark);
      ASSERT_TRUE(found.is_object());
      EXPECT_EQ(found["dark"], dark);
      EXPECT_EQ(found["width"], width);
      for (const char* what : {"wide", "cut", "faint"})
        EXPECT_EQ(found[what], json::array()) << what << " at " << found["width"] << dark;
    }
}
}  // namespace
}  // namespace warploom
