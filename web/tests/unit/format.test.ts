import { expect, test, vi } from "vitest";
import { count, duration, parseDuration, percent, place, ticks, timeMarks } from "../../src/format";

test("durations have three digits and their own unit", () => {
  const shown = [0, 7, 999, 1000, 38_400, 212_000, 999_700, 1_843_000, 75_000_000].map(duration);
  expect(shown).toEqual(["0 ms", "7 µs", "999 µs", "1 ms", "38.4 ms", "212 ms", "1 s", "1.84 s", "75 s"]);
  const long = [179, -180, 2_109, 3_599, 3_900, 7_200, 4_000_000].map((seconds) => duration(seconds * 1e6));
  expect(long).toEqual(["179 s", "-3 min", "35 min", "1 h", "1 h 5 min", "2 h", "1 111 h 7 min"]);
});

test("a share that is not nothing is not shown as nothing", () => {
  expect([percent(0, 9), percent(1, 100_000), percent(15, 1000), percent(71, 100), percent(1, 0)]).toEqual(["0 %", "< 0.1 %", "1.5 %", "71 %", "0 %"]);
});

test("thousands are set apart", () => {
  expect([count(7), count(1234), count(1_234_567)]).toEqual(["7", "1 234", "1 234 567"]);
});

test("a duration is understood with and without a unit, and nothing else is", () => {
  expect(["100", "1.5 s", "20ms", "15m", "1h", "250us", "x", "", "-3"].map(parseDuration)).toEqual([100_000, 1_500_000, 20_000, 900_000_000, 3_600_000_000, 250, null, null, null]);
});

test("a place is the end of its path with the line", () => {
  expect([place({ file: "/srv/shop/orders/service.py", line: 88 }), place({ file: "", line: 0 }), place({ file: "a.py", line: 0 })]).toEqual(["orders/service.py:88", "", "a.py"]);
});

test("an axis has round marks", () => {
  expect(ticks(1_840_000, 5)).toEqual([0, 500_000, 1_000_000, 1_500_000]);
});

test("an axis of time has round times, and no two marks say the same", () => {
  const begin = new Date(2026, 10, 30, 9, 59, 57, 400).getTime() * 1000;
  const marked = (seconds: number, most = 7) => timeMarks(begin, begin + seconds * 1e6, most);
  const after = (seconds: number) => marked(seconds).map(({ us }) => (us - begin) / 1e6);
  expect(after(6.2)).toEqual([0.6, 1.6, 2.6, 3.6, 4.6, 5.6]);
  expect(after(60)).toEqual([2.6, 12.6, 22.6, 32.6, 42.6, 52.6]);
  expect(after(3 * 86_400).map((at) => new Date(begin / 1000 + at * 1000).getHours())).toEqual([12, 0, 12, 0, 12, 0]);
  for (const most of [3, 7]) {
    for (const seconds of [1, 2.4, 4.5, 6.2, 22, 60, 3000, 40_000, 86_400, 2 * 86_400, 9 * 86_400, 200 * 86_400]) {
      const texts = marked(seconds, most).map(({ text }) => text);
      expect(texts.length).toBeGreaterThan(0);
      expect(texts.length).toBeLessThan(most + 2);
      expect(new Set(texts).size).toBe(texts.length);
    }
  }
});

test("the days of an axis begin at midnight, also where the clock is put back", () => {
  vi.stubEnv("TZ", "Europe/Berlin");
  const begin = new Date(2026, 9, 23, 9).getTime() * 1000;
  const marks = timeMarks(begin, begin + 5 * 86_400e6, 5);
  expect(marks.map(({ us }) => [new Date(us / 1000).getDate(), new Date(us / 1000).getHours()])).toEqual([[24, 0], [25, 0], [26, 0], [27, 0], [28, 0]]);
  vi.unstubAllEnvs();
});
