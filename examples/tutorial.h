/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of docs/tutorial.md share: options, checks, waiting for an event, registering
 * memory, connecting. Step 1 of the tutorial explains each function, step 5 how a host is found.
 */
#ifndef TUTORIAL_H
#define TUTORIAL_H

#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dat/udat.h>

#define SECONDS(n) ((n)*1000000u) /* DAT time is in microseconds */

/* The options of all programs. */
static char *adapter = "soft-lo"; /* -a; `dat_info` lists those of this host */
static const char *server;	  /* -s, its name or address; NULL: the adapter's own address */

/* Takes the options. The other arguments are in argv[1] and after it then. */
static inline void take_options(int *argc, char ***argv)
{
	int letter;

	while ((letter = getopt(*argc, *argv, "+a:s:")) != -1) {
		if (letter == 'a')
			adapter = optarg;
		else if (letter == 's')
			server = optarg;
		else
			exit(2); /* getopt has said why */
	}
	*argc -= optind - 1;
	*argv += optind - 1;
}

/* Every call returns a code. dat_strerror converts it to text. */
static inline void check(const char *call, DAT_RETURN code)
{
	const char *type, *subtype;

	if (code == DAT_SUCCESS)
		return;
	dat_strerror(code, &type, &subtype);
	fprintf(stderr, "%s: %s %s\n", call, type, subtype);
	exit(1);
}
#define CHECK(call) check(#call, call)

/* Waits for the next event of an EVD. */
static inline DAT_EVENT next_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	CHECK(dat_evd_wait(evd, SECONDS(60), 1, &event, &more));
	return event;
}

/* Waits for an event that has to be the next one. A completion has to be successful. */
static inline DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next_event(evd);

	if (event.event_number != number) {
		fprintf(stderr, "event 0x%x instead of 0x%x\n", (unsigned)event.event_number,
			(unsigned)number);
		exit(1);
	}
	if (number == DAT_DTO_COMPLETION_EVENT &&
	    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
		fprintf(stderr, "completion status %d\n",
			(int)event.event_data.dto_completion_event_data.status);
		exit(1);
	}
	return event;
}

/* Registered memory. */
struct memory {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local_key; /* for triplets of this process */
	DAT_RMR_CONTEXT key;	   /* for triplets of peers */
};

static inline struct memory register_memory(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void *start,
					    size_t length, DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_REGION_DESCRIPTION region = {.for_va = start};
	struct memory memory;

	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, privileges, &memory.lmr,
			     &memory.local_key, &memory.key, NULL, NULL));
	return memory;
}

/* A piece of registered memory, as posts take it. */
static inline DAT_LMR_TRIPLET piece(const struct memory *memory, void *start, size_t length)
{
	DAT_LMR_TRIPLET triplet = {.lmr_context = memory->local_key,
				   .virtual_address = (uintptr_t)start,
				   .segment_length = length};

	return triplet;
}

/* The address of a host: a name, or text such as 192.0.2.1 or fe80::1%eth0. */
static inline struct sockaddr_storage find_host(const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	int code = getaddrinfo(host, NULL, &hints, &found);

	if (code != 0) {
		fprintf(stderr, "%s: %s\n", host, gai_strerror(code));
		exit(1);
	}
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return address;
}

/* Requests a connection to the server. Without -s it uses the same adapter, so its address is ours. */
static inline void request_connection(DAT_IA_HANDLE ia, DAT_EP_HANDLE ep, const char *qualifier)
{
	struct sockaddr_storage address;
	DAT_IA_ADDRESS_PTR target;
	DAT_IA_ATTR attr;

	if (server) {
		address = find_host(server);
		target = (DAT_IA_ADDRESS_PTR)&address; /* the port in it is ignored */
	} else {
		CHECK(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
		target = attr.ia_address_ptr;
	}
	CHECK(dat_ep_connect(ep, target, strtoull(qualifier, NULL, 0), SECONDS(10), 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* For the clients. */
static inline void tell_qualifier(DAT_CONN_QUAL qualifier)
{
	printf("qualifier %llu\n", (unsigned long long)qualifier);
	fflush(stdout);
}

/* Listens on a qualifier that the provider chooses, and prints it for the clients. */
static inline DAT_PSP_HANDLE listen_and_tell(DAT_IA_HANDLE ia, DAT_EVD_HANDLE evd)
{
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;

	CHECK(dat_psp_create_any(ia, &qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	tell_qualifier(qualifier);
	return psp;
}

#endif
