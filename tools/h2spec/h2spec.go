// SPDX-License-Identifier: BSD-2-Clause

//go:build tools

// Package h2spec names the program that make h2spec builds. h2spec has no
// go.mod: the one beside this file says the versions of what it needs, and
// they have to build with the Go of Debian 12.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
