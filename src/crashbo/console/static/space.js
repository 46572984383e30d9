// Parameters: which of them vary, and where their values lie from 0 to 1.

// What an object holds by a name that may be anything, "constructor" too.
export const own = (object, name) => (object && Object.hasOwn(object, name) ? object[name] : undefined);

export const varying = (info) =>
  info.parameters.filter((one) => (one.type === "choice" ? one.choices.length > 1 : one.low < one.high));

// Where a parameter's value lies from 0 to 1, as the model sees it.
export function locate(one, value) {
  if (one.type === "choice") return (one.choices.findIndex((option) => option === value) + 0.5) / one.choices.length;
  if (one.type === "int" && one.log) {
    const start = Math.log(one.low - 0.5);
    return (Math.log(value) - start) / (Math.log(one.high + 0.5) - start);
  }
  if (one.step) {
    const cells = Math.floor((one.high - one.low) / one.step + 1e-9) + 1;
    return (Math.round((value - one.low) / one.step) + 0.5) / cells;
  }
  if (one.log) return Math.log(value / one.low) / Math.log(one.high / one.low);
  return (value - one.low) / (one.high - one.low);
}

// The value at a position from 0 to 1.
export function valueAt(one, position) {
  if (one.type === "choice") return one.choices[Math.min(Math.floor(position * one.choices.length), one.choices.length - 1)];
  if (one.type === "int" && one.log) {
    const start = Math.log(one.low - 0.5);
    return Math.min(Math.max(Math.round(Math.exp(start + position * (Math.log(one.high + 0.5) - start))), one.low), one.high);
  }
  if (one.step) {
    const cells = Math.floor((one.high - one.low) / one.step + 1e-9) + 1;
    return Number((one.low + Math.min(Math.floor(position * cells), cells - 1) * one.step).toPrecision(12));
  }
  const value = one.log ? one.low * (one.high / one.low) ** position : one.low + position * (one.high - one.low);
  return Math.min(Math.max(Number(value.toPrecision(6)), one.low), one.high);
}
