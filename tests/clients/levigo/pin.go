// Package pin names the client whose tests are run, so that its version is pinned by go.mod and
// its contents by go.sum.
package pin

import _ "github.com/jmhodges/levigo"
