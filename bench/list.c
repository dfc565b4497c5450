// SPDX-License-Identifier: BSD-2-Clause
#include "list.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common.h"

/* Copies the part before the next comma; returns what follows, or NULL if it is the last or too
 * long, which leaves an empty part. */
static const char *list_part(const char *text, char *part, size_t size)
{
	size_t len = strcspn(text, ",");

	part[0] = '\0';
	if (len < size) {
		memcpy(part, text, len);
		part[len] = '\0';
	}
	return text[len] == ',' ? text + len + 1 : NULL;
}

int list_numbers(const char *text, uint64_t min, uint64_t max, struct list_numbers *list_out)
{
	list_out->count = 0;
	while (text) {
		uint64_t *value = &list_out->values[list_out->count];
		char part[24];

		if (list_out->count == LIST_MAX)
			return -EINVAL;
		text = list_part(text, part, sizeof(part));
		if (tool_parse_number(part, value) != 0 || *value < min || *value > max)
			return -EINVAL;
		list_out->count++;
	}
	return 0;
}

int list_names(const char *text, const char *const *names, unsigned *set_out)
{
	*set_out = 0;
	while (text) {
		unsigned i = 0;
		char part[24];

		text = list_part(text, part, sizeof(part));
		while (names[i] && strcmp(names[i], part) != 0)
			i++;
		if (!names[i])
			return -EINVAL;
		*set_out |= 1u << i;
	}
	return 0;
}
