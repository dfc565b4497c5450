// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reports. The environment says what is done with them:
 *
 *   DAT_CHECK        1 reports; "all" reports advice, too; "abort" ends the program at the first report.
 *                    Several words are separated by commas
 *   DAT_CHECK_OFF    names of rules that are off, separated by commas
 *   DAT_CHECK_FILE   a file of suppressions: a line has the name of a rule, or *, and a piece of the
 *                    text of a frame; # begins a comment
 *
 * A report is made once for an object and once for a place in the program. How often each rule was
 * broken is written when the program ends.
 */
#ifndef CHECK_REPORT_H
#define CHECK_REPORT_H

#include "check/object.h"
#include "check/rules.h"

/* Reads the environment, once. */
void check_report_init(void);

/*
 * Reports that a rule was broken. `object` may be NULL; its origin and history follow the text. No
 * lock is held: the program's handler is called.
 */
__attribute__((format(printf, 4, 5))) void check_report(const struct check_call *call,
							enum check_rule rule,
							struct check_object *object,
							const char *format, ...);
bool check_rule_is_on(enum check_rule rule);
/* False: it is off, or was reported for that object, which is counted. check_report asks by itself. */
bool check_is_news(enum check_rule rule, const struct check_object *object);

/* Fills in the place of the call that the program is in. */
void check_place_get(struct check_place *place_out);
int check_thread(void);
uint64_t check_now_ns(void); /* on the monotonic clock */
unsigned check_number(const struct check_object *object);
/* "ep 3": the type and number of an object. */
struct check_name {
	char text[24];
};
struct check_name check_name(const struct check_object *object);

#endif
