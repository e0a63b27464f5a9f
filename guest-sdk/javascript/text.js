// UTF-8, with what the engine has.
//
// QuickJS has no TextDecoder, and a loop over bytes costs more than the plugin. But it has base64 in both directions,
// which is bytes to text and back at the speed of the machine, and `escape` and `encodeURIComponent` know UTF-8.

const OTHER = /[^\x00-\x7f]/;

let latin1;
let bytesOf;
let decode;
let encode;

if (typeof TextDecoder === "undefined") {
  latin1 = (bytes) => atob(bytes.toBase64());
  bytesOf = (text) => Uint8Array.fromBase64(btoa(text));
  decode = (text) => decodeURIComponent(escape(text));
  encode = (text) => unescape(encodeURIComponent(text));
} else {
  // Node, where plugins are tested, and engines that have the real thing.
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const encoder = new TextEncoder();
  const chunk = 1 << 13;
  latin1 = (bytes) => {
    let text = "";
    for (let at = 0; at < bytes.length; at += chunk) text += String.fromCharCode.apply(null, bytes.subarray(at, at + chunk));
    return text;
  };
  bytesOf = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
  decode = (text) => strict.decode(bytesOf(text));
  encode = (text) => {
    if (!text.isWellFormed()) throw new URIError("the text is not well-formed");
    return latin1(encoder.encode(text));
  };
}

/** The UTF-8 of a text. Throws when it is not well-formed. */
export const toBytes = (text) => bytesOf(OTHER.test(text) ? encode(text) : text);

/** The text that bytes of UTF-8 are. Throws when they are not. */
export function toText(bytes) {
  const text = latin1(bytes);
  return OTHER.test(text) ? decode(text) : text;
}

/** The texts of a column: `ends` are its offsets. */
export function decodeTexts(bytes, ends, rows) {
  const text = latin1(bytes);
  const values = new Array(rows);
  let start = ends[0];
  if (!OTHER.test(text)) {
    for (let row = 0; row < rows; row++) {
      const end = ends[row + 1];
      values[row] = text.substring(start, end);
      start = end;
    }
    return values;
  }
  for (let row = 0; row < rows; row++) {
    const end = ends[row + 1];
    const value = text.substring(start, end);
    values[row] = OTHER.test(value) ? decode(value) : value;
    start = end;
  }
  return values;
}

/** The offsets and bytes of a column of texts. Throws when one is not well-formed. */
export function encodeTexts(values) {
  const ends = new Int32Array(values.length + 1);
  let end = 0;
  let text = values.join("");
  if (!OTHER.test(text)) {
    for (let row = 0; row < values.length; row++) {
      end += values[row].length;
      ends[row + 1] = end;
    }
  } else {
    const parts = new Array(values.length);
    for (let row = 0; row < values.length; row++) {
      const value = values[row];
      parts[row] = OTHER.test(value) ? encode(value) : value;
      end += parts[row].length;
      ends[row + 1] = end;
    }
    text = parts.join("");
  }
  return [ends, bytesOf(text)];
}
