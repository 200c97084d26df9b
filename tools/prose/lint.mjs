// SPDX-License-Identifier: BSD-2-Clause
//
// Reads {"files": [{path, name, options: {rule: its options}}..]} from standard
// input. Prints [{file, line, column, what}..], in the order of the files and
// of the lines: what is wrong.

import { readFileSync } from "node:fs";

import { TextlintKernel } from "@textlint/kernel";
import markdown from "@textlint/textlint-plugin-markdown";

import { rules } from "./style.mjs";

const request = JSON.parse(readFileSync(0, "utf8"));
const kernel = new TextlintKernel();
const wrong = [];

for (const { path, name, options } of request.files) {
    const result = await kernel.lintText(readFileSync(path, "utf8"), {
        ext: ".md",
        filePath: path,
        plugins: [{
            pluginId: "markdown",
            plugin: markdown.default ?? markdown,
        }],
        rules: Object.entries(options).map(([ruleId, given]) => ({
            ruleId, rule: rules[ruleId], options: given,
        })),
    });
    for (const { line, column, message } of result.messages) {
        wrong.push({ file: name, line, column, what: message });
    }
}
process.stdout.write(JSON.stringify(wrong));
