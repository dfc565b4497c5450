// SPDX-License-Identifier: BSD-2-Clause
/*
 * The log of the libraries, for tests that compare it. log_capture_start() in main() selects the
 * kind "errors" before a library reads the variable; between log_begin() and log_end() standard
 * error goes to a memory file.
 */
#ifndef TESTS_LOG_UTIL_H
#define TESTS_LOG_UTIL_H

void log_capture_start(void);
void log_begin(void);
/* What was logged since log_begin(), until the next call. */
const char *log_end(void);
/* Its last line, without the time stamp, library and process. */
const char *log_last_line(void);
/* The line before that one; empty: there is none. */
const char *log_line_before(void);

#endif
