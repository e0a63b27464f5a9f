// What the plugin offers: what its module exports, under the names it exports it.

/** Marks what `scalar`, `table`, `aggregate`, `processor`, `source` and `migration` make. */
export const DEFINITION = Symbol("millstream definition");

export const offered = { function: [], aggregate: [], processor: [], source: [], migration: [] };

/** `wordCount` and `WordCount` as `word_count`. */
export function snake(name) {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
}

/** A name that SQL takes as it is. */
export function sqlName(name) {
  if (!/^[a-z_][a-z0-9_]*$/.test(name) || name === "__proto__") {
    throw new TypeError(`\`${name}\` cannot be a name in SQL: lower-case letters, digits and _`);
  }
  return name;
}

/** Registers the exports of a plugin's module. */
export function offer(module) {
  for (const [name, value] of Object.entries(module)) {
    const definition = value?.[DEFINITION];
    if (!definition) continue;
    definition.name = sqlName(definition.name ?? snake(name));
    const offers = offered[definition.kind];
    if (offers.some((other) => other.name === definition.name)) {
      throw new TypeError(`there are two functions \`${definition.name}\``);
    }
    offers.push(definition);
  }
  if (Object.values(offered).every((offers) => offers.length === 0)) {
    throw new TypeError("the plugin exports no function: export what `scalar`, `table`, … return");
  }
}
