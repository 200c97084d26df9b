// SPDX-License-Identifier: BSD-2-Clause
//
// Sandpaper's style, as textlint rules: the length of sentences, the mean of a
// page, and the words of words.json.

import { split } from "sentence-splitter";
import { StringSource } from "textlint-util-to-string";

const WORD = /[\p{L}\p{N}]/u;

// The text of a node as a reader sees it. Code counts as one word, of which
// no letter can match an entry of the word list.
function plain(node) {
    return new StringSource(node, {
        replacer({ node: part, maskValue }) {
            return part.type === "Code" ? maskValue("C") : undefined;
        },
    });
}

// Each sentence of a plain text: its words, where it begins, and how.
// The splitter takes "1024. If" for a number of a list: it gets no digits.
function sentences(text) {
    return split(text.replaceAll(/[0-9]/g, "x"))
        .filter((part) => part.type === "Sentence")
        .map((part) => ({
            words: part.raw.split(/\s+/).filter((w) => WORD.test(w)).length,
            index: part.range[0],
            begin: text.slice(...part.range).split(/\s+/).slice(0, 4).join(" ")
                .replaceAll(/C{2,}/g, ".."),
        }))
        .filter((sentence) => sentence.words > 0);
}

// A table's cells and headings are no sentences, but can be too long as well.
function sentenceLength(context, { max }) {
    const check = (node) => {
        const source = plain(node);
        for (const { words, index, begin } of sentences(source.toString())) {
            if (words > max) {
                context.report(node, new context.RuleError(
                    `a sentence of ${words} words, at most ${max}: "${begin} .."`,
                    { index: source.originalIndexFromIndex(index) ?? 0 }));
            }
        }
    };
    const { Paragraph, Header, TableCell } = context.Syntax;
    return { [Paragraph]: check, [Header]: check, [TableCell]: check };
}

function meanLength(context, { max }) {
    let words = 0;
    let count = 0;
    return {
        [context.Syntax.Paragraph](node) {
            for (const sentence of sentences(plain(node).toString())) {
                words += sentence.words;
                count += 1;
            }
        },
        [context.Syntax.DocumentExit](node) {
            if (count > 0 && words / count > max) {
                context.report(node, new context.RuleError(
                    `the page's mean sentence has ${(words / count).toFixed(1)}`
                    + ` words, at most ${max}`, { index: 0 }));
            }
        },
    };
}

// A space of a phrase is any white space of the text.
function expression({ find }) {
    return new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${find.replaceAll(" ", "\\s+")})`
        + "(?![\\p{L}\\p{N}_-])", "giu");
}

function wordList(context, { list }) {
    const entries = list.map((entry) => ({ ...entry, re: expression(entry) }));
    const check = (node) => {
        const source = plain(node);
        const text = source.toString();
        for (const { re, write } of entries) {
            for (const found of text.matchAll(re)) {
                const said = found[0].replaceAll(/\s+/g, " ");
                context.report(node, new context.RuleError(
                    `"${said}": write ${write}`,
                    { index: source.originalIndexFromIndex(found.index) ?? 0 }));
            }
        }
    };
    const { Paragraph, Header, TableCell } = context.Syntax;
    return { [Paragraph]: check, [Header]: check, [TableCell]: check };
}

export const rules = {
    "sentence-length": sentenceLength,
    "mean-length": meanLength,
    "words": wordList,
};
