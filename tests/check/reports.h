// SPDX-License-Identifier: BSD-2-Clause
/* Collects what the provider that checks reports. Include it behind the harness. */
#ifndef TESTS_REPORTS_H
#define TESTS_REPORTS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <dat/opendat.h>

#define REPORTS_MAX 64u

static struct {
	pthread_mutex_t lock;
	unsigned count;
	/* tests of other rules post one Receive after the other, which that rule is about */
	bool has_recv_none;
	char rules[REPORTS_MAX][32];
	char texts[REPORTS_MAX][4096];
	DAT_HANDLE handles[REPORTS_MAX];
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void take_report(const DAT_OPENDAT_CHECK_REPORT *report, DAT_PVOID context)
{
	(void)context;
	pthread_mutex_lock(&reports.lock);
	if (reports.count < REPORTS_MAX &&
	    (reports.has_recv_none || strcmp(report->rule, "recv-none") != 0)) {
		snprintf(reports.rules[reports.count], 32, "%s", report->rule);
		snprintf(reports.texts[reports.count], 4096, "%s", report->text);
		reports.handles[reports.count++] = report->handle;
	}
	pthread_mutex_unlock(&reports.lock);
}

static void forget_reports(void)
{
	pthread_mutex_lock(&reports.lock);
	reports.count = 0;
	pthread_mutex_unlock(&reports.lock);
}

/* How many reports of that rule there are, with that piece of text. */
static unsigned count_reports(const char *rule, const char *piece)
{
	unsigned count = 0;

	pthread_mutex_lock(&reports.lock);
	for (unsigned i = 0; i < reports.count; i++)
		count += strcmp(reports.rules[i], rule) == 0 && strstr(reports.texts[i], piece);
	pthread_mutex_unlock(&reports.lock);
	return count;
}

/* Exactly that report, and no other. */
static void expect_report(const char *rule, const char *piece)
{
	unsigned found = count_reports(rule, piece);

	if (found != 1 || reports.count != 1)
		for (unsigned i = 0; i < reports.count; i++)
			print_error("%s\n", reports.texts[i]);
	assert_int_equal(found, 1);
	assert_int_equal(reports.count, 1);
	forget_reports();
}

static void expect_silence(void)
{
	for (unsigned i = 0; i < reports.count; i++)
		print_error("%s\n", reports.texts[i]);
	assert_int_equal(reports.count, 0);
}

#endif
