// SPDX-License-Identifier: BSD-2-Clause
/* The rules of the provider that checks, from its table. */
#include <stdio.h>

#include "check/rules.h"

#include "common.h"
#include "info.h"

#define FAULT "fault"
#define ADVICE "advice"
#define RULE_LINE(identifier, name, level, row, page, text) {name, level, row, text},

int info_checks_print(void)
{
	static const struct {
		const char *name, *level, *row, *text;
	} rules[] = {CHECK_RULES(RULE_LINE)};

	printf("%-18s%-8s%-14s%s\n", "RULE", "LEVEL", "REQUIREMENT", "WHAT");
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		printf("%-18s%-8s%-14s%s\n", rules[i].name, rules[i].level, rules[i].row,
		       rules[i].text);
	return 0;
}
