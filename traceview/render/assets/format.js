// How numbers are written; the same rules as traceview/units.py, which a test compares.

const TIMES = ["ns", "µs", "ms", "s"];
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];
const RATES = ["B/s", "KB/s", "MB/s", "GB/s", "TB/s"];

function duration(ns) {
  return ns ? scaled(ns, TIMES, 1000, 4) : "0";
}

function size(bytes) {
  return scaled(bytes, SIZES, 1024, 3);
}

function rate(bytesPerNs) {
  return scaled(bytesPerNs * 1e9, RATES, 1000, 3);
}

function count(number) {
  return number.toLocaleString("en-US");
}

function scaled(value, units, step, digits) {
  const roundsUp = step - 0.5 * 10 ** (3 - digits);
  let unit = 0;
  while (unit < units.length - 1 && Math.abs(value) >= roundsUp) {
    value /= step;
    unit += 1;
  }
  const whole = String(Math.trunc(Math.abs(value))).length;
  const most = Math.max(0, digits - whole);
  return `${value.toLocaleString("en-US", { minimumFractionDigits: 0, maximumFractionDigits: most })} ${units[unit]}`;
}

// A label of a time axis: as many digits as the distance between labels needs.
function milliseconds(ms, apart) {
  const digits = apart >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(apart)));
  return ms.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
