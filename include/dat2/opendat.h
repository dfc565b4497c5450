/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenDAT's extensions for programs of DAT 2.0: those of <dat/opendat.h>, with the types of 2.0. A
 * program that uses them requires OpenDAT.
 */
#ifndef _UDAT_H_
#include <dat2/udat.h>
#endif

#include <dat/opendat.h>
