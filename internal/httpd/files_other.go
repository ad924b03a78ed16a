//go:build !unix

package httpd

// maxFiles returns how many more files the process may open.
func maxFiles() (more int, known bool) { return 0, false }
