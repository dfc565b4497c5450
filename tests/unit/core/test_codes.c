// SPDX-License-Identifier: BSD-2-Clause
/* Codes of the core as DAT 2.0 returns them, compared with the facts of both generations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "codes.h"
#include "dat2/convert.h"

#define CODE(name, first, second) {#name, first, second},

struct code {
	const char *name;
	uint32_t first, second; /* in DAT 1.2 and DAT 2.0 */
};

static const struct code types[] = {TYPES(CODE)}, subtypes[] = {SUBTYPES(CODE)};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))
#define ERROR 0x80000000u

/* D2-ERR-03: with each type; the two classes, and the bare code of an empty queue */
static void status__every_subtype__that_of_its_name(void **state)
{
	(void)state;
	assert_true(COUNT_OF(subtypes) > 100 && ONLY_SUBTYPES == 0);
	for (size_t i = 0; i < COUNT_OF(types); i++)
		for (size_t k = 0; k < COUNT_OF(subtypes); k++) {
			const struct code *type = &types[i], *subtype = &subtypes[k];
			DAT_RETURN error = ERROR | type->first | subtype->first;

			if (type->first != type->second || !type->first)
				continue;
			if (dat2_status(error) != (ERROR | type->second | subtype->second))
				fail_msg("%s / %s", type->name, subtype->name);
			if (dat2_status(error & ~ERROR) != (type->second | subtype->second))
				fail_msg("%s / %s, without class", type->name, subtype->name);
		}
	assert_int_equal(dat2_status(DAT_SUCCESS), 0);
}

/* D2-ERR-03: one type has another number, and the core never composes it */
static void status__types__one_differs(void **state)
{
	unsigned int different = 0;

	(void)state;
	assert_int_equal(ONLY_TYPES, 0);
	for (size_t i = 0; i < COUNT_OF(types); i++) {
		if (types[i].first == types[i].second)
			continue;
		assert_string_equal(types[i].name, "DAT_NOT_IMPLEMENTED");
		assert_int_equal(types[i].second, DAT2_NOT_IMPLEMENTED);
		different++;
	}
	assert_int_equal(different, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status__every_subtype__that_of_its_name),
		cmocka_unit_test(status__types__one_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
