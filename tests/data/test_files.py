"""Tests of tables as found in practice: their values, and the report on how they were read.

Each case has a file, the correct values, and the facts that must be reported.
"""

import dataclasses
import datetime
import decimal
import gzip
import io
import json
import re
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyarrow import parquet

from appca.cli import main
from appca.data.dataset import Dataset
from appca.data.files import ReadLimits, facts, in_one_line
from appca.data.readers import read, read_many
from appca.words import InputError
from tests.data import file_makers as made
from tests.data.file_makers import Day, xlsx
from tests.sentences import faults_of

GAP = np.nan


class Case(NamedTuple):
    """A file and what is right."""

    content: Any  # text, bytes, or the columns of a Parquet file
    X: Any = None  # some first rows
    names: Any = ...  # of the features
    ids: Any = None  # the first ones
    labels: Any = None  # by column, the first entries
    n: int | None = None  # rows
    facts: Any = MappingProxyType({})  # by what they are about
    options: Any = MappingProxyType({})
    refusal: str = ""
    name: str = "t.csv"


def written(table: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.table(table) if isinstance(table, dict) else table, stream, **options)
    return stream.getvalue()


def bytes_of(case: Case) -> bytes:
    if isinstance(case.content, (dict, pa.Table)):
        return written(case.content)
    return case.content if isinstance(case.content, bytes) else case.content.encode()


def opened(case: Case, **more: Any) -> Dataset:
    options = {"missing": "model"} | dict(case.options) | more
    options = {} if case.name.endswith((".zip", ".nii")) and len(options) < 2 else options
    return read(case.name, io.BytesIO(bytes_of(case)), **options)


def read_or_refused(case: Case) -> Dataset | None:
    """Return the data set; None where it is refused in one sentence."""
    sentence = "."
    try:
        return opened(case)
    except InputError as error:
        sentence = str(error)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return None


def rows(line: str, n: int, start: int = 0) -> str:
    """Lines of which {i} is the number, and {h} half of it."""
    return "\n".join(line.format(i=i, h=i / 2, k="ab"[i % 2]) for i in range(start, start + n))


_REAL = ",".join(f"{400 + j * 0.7:.1f}" for j in range(12))
HEADERS = {
    "wavelengths above spectra that rise, too": Case(
        "name;400;402;404;406;kind\n" + rows("H{i};0,{i}1;0,{i}3;0,{i}5;0,{i}7;{k}", 9),
        *(None, ("400", "402", "404", "406"), ["H0"], {"kind": ["a", "b"]}),
    ),
    "two years above whole numbers": Case(
        "region,2019,2020\nA,12,13\nB,25,24\nC,7,9", [[12, 13]], ("2019", "2020"), ["A", "B", "C"]
    ),
    "pandas above counts": Case("0,1,2,3\n" + rows("{i},3,0,2", 5), names=tuple("0123"), n=5),
    "falling wavenumbers": Case(
        "4000;3998;3996\n" + rows("0,{i}5;1,{i};0,2{i}", 9),
        *([[0.05, 1.0, 0.20]], ("4000", "3998", "3996")),
    ),
    "many real wavelengths that rise": Case(
        "\n".join([_REAL, *(_REAL.translate(str.maketrans("4.", f"{i}0")) for i in range(5, 9))]),
        names=tuple(_REAL.split(",")),
    ),
    "a word above classes, wavelengths after it": Case(
        f"country,{_REAL}\n" + "\n".join("ABA"[i] + f",0.{i}5" * 12 for i in range(3)),
        *(None, tuple(_REAL.split(",")), None, {"country": ["A", "B"]}, 3, {"In doubt": "none"}),
    ),
    "an index without a name, shuffled": Case(
        ",a,b\n" + "\n".join(f"{i * 7 % 10},{i / 3:.2f},{i * i % 7}" for i in range(10)),
        *(None, ("a", "b"), ["0", "7", "4"]),
    ),
    "whole numbers above whole numbers": Case(
        *("2001,2002\n1,2\n3,5\n4,8", [[2001, 2002]], None),
        facts={"In doubt": "the first line is read as data"},
    ),
    "no header": Case("1.5,2,3\n4,5,6\n7,8,8", [[1.5, 2, 3]], None, facts={"Read as": "no header"}),
    "R, tabs": Case(
        '"len"\t"kind"\t"wid"\n"r1"\t1.5\t"a"\t2\n"r2"\t2.5\t"b"\t3\n"r3"\t2\t"a"\t1',
        *([[1.5, 2]], ("len", "wid"), ["r1", "r2", "r3"], {"kind": ["a", "b"]}),
    ),
    "a comment is the header": Case(
        "# made 2024\n# t x y\n0 1 2\n1 3 4.5\n2 5 6",
        *([[0, 1, 2]], ("t", "x", "y"), None, None, 3, {"Lines not used": "1 comment line"}),
    ),
    "line breaks in the header": Case(
        '"mass\n(g)","width\n(mm)"\n1,2\n3,4.5', [[1, 2]], ("mass (g)", "width (mm)")
    ),
    "names and units": Case(
        "name;mass;length\n;kg;m\n" + rows("n{i};{i},5;{h}", 6).replace(".", ","),
        *([[0.5, 0]], ("mass kg", "length m"), ["n0"]),
    ),
    "merged cells above": Case(
        "Before,,After,\na,b,a,b\n1,2,3,4\n5,6,7,8.5\n1,2,2,2",
        *([[1, 2, 3, 4]], ("Before a", "Before b", "After a", "After b")),
    ),
    "a name twice": Case(
        *("x,x,y\n1,2,3\n4,5,6.5", [[1, 2, 3]], ("x", "x (2)", "y")),
        facts={"Renamed columns": "x (2)"},
    ),
    "the line of the header by choice": Case(
        *("a;b;c\nd;e;f\nx;y;z\n1;2;3\n4;5;6,5", [[1, 2, 3]], ("x", "y", "z")),
        facts={"Read as": "header in line 3"},
        options={"header": 3},
    ),
}
NUMBERS = {
    "1.234 beside 0,5": Case("n;x\n1.234;0,5\n12.345;1,5\n7.000;2,25", [[1234, 0.5], [12345, 1.5]]),
    "points and commas": Case(
        "n;x\n1.234,5;1\n-2.345.678,25;2,5", [[1234.5, 1], [-2345678.25, 2.5]]
    ),
    "quoted commas": Case('n,x\n"1,234",0.5\n"2,345,678.5",1.5', [[1234, 0.5], [2345678.5, 1.5]]),
    "narrow, hard and plain blanks between thousands": Case(
        "n;x\n1\u202f234,5;1,5\n12\u00a0345,5;2\n1 234 567;3,5", [[1234.5, 1.5], [12345.5, 2]]
    ),
    "apostrophes": Case("n;x\n1'234.5;1\n2’000’000;2.5", [[1234.5, 1], [2e6, 2.5]]),
    "decimal commas in quotation marks": Case(
        *('id,x,y\na,"1,5","2,25"\nb,"-0,5",3', [[1.5, 2.25], [-0.5, 3]]),
        facts={"Read as": "decimal comma"},
    ),
    "one column has the other decimal sign": Case(
        *("x;y;z\n1,5;2.75;0,1\n2,5;3.5;0,2\n3,5;1.25;0,7", [[1.5, 2.75, 0.1]]),
        facts={"Other decimal sign": "y"},
    ),
    "1.234 alone may be either": Case(
        *("x;y\n1.234;5\n2.345;6\n3.456;7", [[1.234, 5]]),
        facts={"In doubt": "1.234 is read as 1.234"},
    ),
    "by choice": Case("x;y\n1.234;5\n2.345;6", [[1234, 5]], options={"decimal": ","}),
    "minus signs of typesetters": Case("x,y\n\u22121.5,2\n\u20132.5,+3", [[-1.5, 2], [-2.5, 3]]),
    "percent, money, units and accounts": Case(
        "p,m,u,a,t\n12.5%,$1.50,7.5 kg,(3.5),20 °C\n3%,-$2.25,8 kg,4,21.5 °C",
        [[12.5, 1.5, 7.5, -3.5, 20], [3, -2.25, 8, 4, 21.5]],
        facts={"Units": "p in %, m in $, u in kg, t in °C"},
    ),
    "units that differ are no numbers": Case(
        *("x,y,z\n1 kg,2,1\n800 g,3,2\n2 kg,4,2.5", [[2, 1]], ("y", "z")),
        facts={"Left out": "x (numbers of different units: kg, g)"},
    ),
    "cells that are no numbers": Case(
        *("x,y\nn/a,1\n<0.01,2\n" + rows("{i},{h}", 30), [[GAP, 1], [GAP, 2], [0, 0]]),
        facts={"Not numbers": "x: 2 cells: n/a, <0.01"},
    ),
    "too many of them": Case(
        *("x,y,z\n<1,1,1\n<2,2,2\n" + rows("{i},{h},{i}.5", 8), None, ("y", "z")),
        facts={"Left out": "x (numbers and limits such as “<1”)"},
    ),
    "nearly empty": Case(
        "x,y,z\n1,2,3\n" + rows("{i},,{h}", 30), None, ("x", "z"), facts={"Left out": "y (over 90%"}
    ),
    "the decimal sign by choice is that of all columns": Case(
        *("x;y;z\n1,5;2.75;0,1\n2,5;3.5;0,2\n3,5;1.25;0,7", [[1.5, 0.1]], ("x", "z")),
        options={"decimal": ","},
    ),
    "powers of Fortran": Case("x  y\n .5D+01 2\n -1.25D-02 4.5", [[5, 2], [-0.0125, 4.5]]),
    "groups of India": Case(
        'x,y\n"12,34,567",2\n"1,00,000.5",3.5', [[1234567, 2], [1e5 + 0.5, 3.5]]
    ),
    "minus signs at the end": Case("x;y\n1.250,50-;2\n7,25-;3\n1;5", [[-1250.5, 2], [-7.25, 3]]),
    "powers of ten": Case("x,y\n1e-3,2E+5\n2.5e2,1e5", [[0.001, 2e5], [250, 1e5]]),
    "many digits": Case(
        "x,y\n0.1234567890123456789,1\n123.78901234567,2", [[0.1234567890123456789, 1]]
    ),
    "late": Case("x;y\n" + rows("{i};{h}", 400).replace(".", ",") + "\n1.234;7\n5;−8", n=402),
}
GAPS = {
    "in numbers": Case(
        "x,w,k\n1,NA,a\n?,2,NA\n3,null,-\n.,4,a\n5,N/A,b\n6,7,\n",
        [[1, GAP], [GAP, 2], [3, GAP]],
        labels={"k": ["a", "NA", "-", "a", "b", ""]},
        facts={"Not numbers": "x: 2 cells: ?, ."},
    ),
    "by choice": Case(
        *("x,w,k\n1,-999,a\n-999.0,2,a\n3,4,none\n5,-999,none", [[1, GAP], [GAP, 2], [3, 4]]),
        labels={"k": ["a", "a", "", ""]},
        options={"na_values": [-999, "none"]},
    ),
    "far off and repeated": Case(
        "x,y,z\n" + rows("{h},{i},2.{i}", 20) + "\n-200,3,1e20\n-200,5,1e20\n4,9999,2",
        facts={"Suspicious values": "x: 2 cells: -200 (2), y: 1 cell: 9999, z: 2 cells: 1e+20 (2)"},
    ),
    "none": Case("x,y\n1,2\n3,4.5", facts={"Missing": "none"}),
    "their mean": Case("a,b\n1,2\n,4\n3,6", [[1, 2], [2, 4]], options={"missing": "mean"}),
    "their rows": Case(
        *("a,b,c\n1,2,x\n,4,y\n3,6,x\n5,8,y", [[1, 2], [3, 6]], ..., ["row-1", "row-3"]),
        labels={"c": ["x", "x", "y"]},
        facts={"Missing": "1 cell, rows left out: a (1)", "Rows left out": "row-2"},
        options={"missing": "drop"},
    ),
}
TEXT = {
    "leading zeros": Case(
        "id,zip,a,b\n" + "\n".join(f"{i:04d},{i % 3:05d},{i / 2},{i % 5}" for i in range(9)),
        *(None, ("a", "b"), ["0000", "0001"], {"zip": ["00000", "00001"]}),
    ),
    "leading zeros beyond the sample": Case(
        "zip,a,b\n" + rows("{i}1,{h},{i}", 400, 100) + "\n00501,1,2", *(None, ("a", "b"), ["1001"])
    ),
    "1E5 is a code": Case(
        *("well,a,b\n1E5,1,2\n2E7,2,3.5\n101,3,1\n4E2,0,1", None, ("a", "b"), ["1E5", "2E7", "101"])
    ),
    "whole numbers of 16 digits": Case(
        "key,a,b\n9007199254740993,1,2\n9007199254740992,2,3.5\n9007199254740995,0,1",
        *(None, ("a", "b"), ["9007199254740993", "9007199254740992"]),
    ),
    "mostly TRUE and FALSE": Case(
        "kind,hair,fins,eggs,legs\nfox,TRUE,False,TRUE,4\nant,FALSE,FALSE,TRUE,6\neel,,TRUE,FALSE,0",
        *([[1, 0, 1, 4], [0, 0, 1, 6]], ("hair", "fins", "eggs", "legs"), ["fox", "ant"]),
        facts={"Flags": "TRUE is 1 and FALSE 0 in 3 columns"},
    ),
    "blanks at both ends": Case(
        "kind,a,b\noak ,1,2\n oak,2,1\n\u00a0elm,3,3.5\nelm\u00a0,4,1",
        labels={"kind": ["oak", "oak", "elm", "elm"]},
    ),
    "nearly all differ": Case(
        "sort,a,b\n" + "\n".join(f"Acacia {i % 17},{i / 3:.2f},{i * i}" for i in range(20)),
        *(None, ("a", "b"), ["Acacia 0", "Acacia 1"], {}),
        facts={"Row names": "sort; 3 duplicates were numbered"},
    ),
    "codes, and names that a label tells apart": Case(
        "number,county,state,a,b,c\n"
        + "\n".join(
            f"{i * 37 % 101},C{i % 15},S{i // 15},{i / 3},{i % 7},0.{i}" for i in range(20)
        ),
        *(None, ("a", "b", "c"), ["C0, S0", "C1, S0"], {"state": ["S0"]}),
        facts={"Left out": "number (a code of each row)"},
    ),
    "a chosen day, and the label that tells its rows apart": Case(
        "city,day,a,b\n"
        + "\n".join(f"{'ABC'[i % 3]},1/{i // 3},{i / 3},{i % 7}" for i in range(30)),
        *(None, ("a", "b"), ["1/0, A", "1/0, B"], {"city": ["A"]}),
        options={"roles": {"day": "id"}},
    ),
    "a label and a day": Case(
        "sort,city,day,a,b\n"
        + "\n".join(
            f"{'uvwxyzt'[i // 2 % 7]},{'AB'[i % 2]},2020-01-{i // 2 + 10},{i / 3},0.{i}"
            for i in range(20)
        ),
        *(
            None,
            ("a", "b"),
            ["A, 2020-01-10", "B, 2020-01-10"],
            {"sort": ["u", "u", "v"], "city": ["A"]},
        ),
        facts={"Left out": "day (dates)"},
    ),
    "a label and a year": Case(
        "team,year,a,b\n"
        + "\n".join(f"{'ABCDEFGHIJ'[i % 10]},{i // 10},{i / 3},{i % 7}" for i in range(30)),
        *(None, ("year", "a", "b"), ["A, 0", "B, 0", "C, 0"], {"team": ["A", "B"]}),
    ),
    "names before their codes": Case(
        "iso_code,land,a,b\n" + "\n".join(f"X{i},Land {i},{i / 3},{i % 7}" for i in range(9)),
        *(None, ("a", "b"), ["Land 0"], {}),
    ),
    "markup, formulas, quotes": Case(
        'a,b,kind\n1,2,<b>x</b>\n3,4,=1+1\n5,6,"x, ""y"""\n7,8,<b>x</b>',
        labels={"kind": ["<b>x</b>", "=1+1", 'x, "y"']},
    ),
    "dates, constants, empty and long columns": Case(
        "a,b,when,one,none,text\n"
        + "\n".join(f"{i / 2},{i % 5},{i + 1:02d}.06.2024,7,,{'x' * 600}" for i in range(9)),
        *(None, ("a", "b"), ["01.06.2024", "02.06.2024"]),
        facts={"Left out": "one (one value), none (empty), text (long text)"},
    ),
    "dates that repeat do not": Case(
        "day,a,b\n" + "\n".join(f"2024-01-{i // 2 + 1:02d},{i / 2},{i * i % 7}" for i in range(18)),
        *(None, ("a", "b"), ["row-1"], {}),
        facts={"Left out": "day (dates)"},
    ),
    "numbers of samples": Case(
        "sample,a,b\n" + "\n".join(f"{i * 7 % 10}41,{i / 3:.2f},{i * i % 7}" for i in range(10)),
        *(None, ("a", "b"), ["041", "741"]),
    ),
    "numbers of samples and subjects that repeat, and of rows": Case(
        "rownames,idno,Sample Number,subject,index,uv index,a\n"
        + "\n".join(
            f"{i},{3 * i + i * i},{i % 130},{i // 9},{i % 9},{i * i % 7},{i / 3}"
            for i in range(270)
        ),
        *(None, ("uv index", "a"), ["0", "4", "10"]),
        {"subject": [0] * 9 + [1], "index": [*range(9), 0]},
        facts={"Left out": "rownames (counts the rows), Sample Number (repeated ids)"},
    ),
    "numbers of samples of which some repeat, and other ids": Case(
        "Sample,patient_id,a,b\n"
        + "\n".join(f"{1 + i % 8}41,{1 + i}7,{i / 3},{i}.5" for i in range(12)),
        *(None, ("a", "b"), ["17", "27"], {}),
        facts={"Left out": "Sample (repeated ids)"},
    ),
    "some repeated numbers of samples name the rows": Case(
        "Sample,a,b\n" + "\n".join(f"{i % 8}41,{i / 3},{i}.5" for i in range(12)),
        *(None, ("a", "b"), ["041", "141"]),
    ),
    "places have x and y": Case(
        "k,x,y,t\n" + "\n".join(f"k{i},{i / 3:.1f},{i % 3},{i * 7 % 5}.5" for i in range(9)),
        *(None, ("x", "y", "t"), ["k0"], {}),
    ),
    "of many whole numbers, those with such a name may be a label": Case(
        pd.DataFrame(
            np.arange(60)[:, None] % np.r_[2, 20:31], columns=["grade", *"abcdefghijk"]
        ).to_csv(index=False),
        facts={"Features that may be labels": "grade (2 values)"},
    ),
    "beside a spectrum named by its axis, a number is a label": Case(
        f"hours,{','.join(f'{400.5 + 2 * j}' for j in range(12))}\n"
        + "\n".join(f"{h}" + f",{h}" * 12 for h in (2.5, 1.5, 4.5)),
        labels={"hours": [2.5, 1.5, 4.5]},
    ),
    "items of one range are no labels, other columns beside them are": Case(
        "a,b,c,d,e,sex,school,age\n"
        + "\n".join(
            f"{i % 6 + 1 if i > 3 else ''},{i // 2 % 6 + 1},{i // 3 % 6 + 1},{i // 4 % 6 + 1},"
            f"{i * 5 % 6 + 1},{i % 2 + 1},{i % 5 + 1 if i > 5 else 'NA'},{i * 7 % 40 + 12}"
            for i in range(40)
        ),
        facts={
            "Labels": "school",
            "Features that may be labels": "sex (2 values), age (40 values)",
        },
        options={"missing": "model"},
    ),
    "the class comes first": Case(
        "town,group,a,b\n" + "\n".join(f"t{i % 40},{'xy'[i % 2]},{i / 3:.2f},3" for i in range(90)),
        labels={"group": ["x", "y"], "town": ["t0", "t1"]},
        options={"roles": {"b": "feature"}},
    ),
    "roles by choice": Case(
        "id,k,a,b,c\n" + rows("{i},{k},{h},7.{i},{i}", 9),
        *(None, ("a", "c"), ["row-1"], {"k": ["a", "b"], "id": [0, 1]}),
        options={"roles": {"id": "label", "b": "ignored", "c": "feature"}},
    ),
    "columns are samples": Case(
        "gene,s1,s2,s3\nA,1,2,3\nB,4,5,6.5\nC,7,8,9",
        *([[1, 4, 7], [2, 5, 8]], ("A", "B", "C"), ["s1", "s2", "s3"]),
        options={"transpose": True},
    ),
}
LINES = {
    "sep=": Case("sep=;\nx;y\n1;2\n3;4,5", [[1, 2]], ("x", "y"), n=2),
    "comments": Case(
        "% one\n% two\nx,y\n1,2\n# three, four, five\n3,4.5",
        n=2,
        facts={"Lines not used": "3 comment lines"},
    ),
    "titles and notes above": Case(
        "Survey of June\n\nStation;Ulm\nName;K;mass\na;1;2,5\nb;2;3\nc;4;1",
        *(None, ("K", "mass"), ["a"], None, 3, {"Lines not used": "2 title lines"}),
    ),
    "a drawn table": Case(
        "a | b | c\n---|---|---\n1 | 2 | 3\n4 | 5 | 6.5",
        *([[1, 2, 3]], ("a", "b", "c"), None, None, 2, {"Lines not used": "1 drawn line"}),
    ),
    "the header again, empty rows, a total and a note": Case(
        "k,x,y\na,1,2\nb,3,4\n,,\nk,x,y\na,5,6\nb,7,8.5\nTotal,16,20.5\nSource: us",
        n=4,
        labels={"k": ["a", "b", "a", "b"]},
        facts={"Lines not used": "1 closing note, 1 empty line, 1 repeated header, 1 total line"},
    ),
    "notes with separators": Case(
        "k;x;y\n" + rows("k{i};{i},5;{h}", 6).replace(".", ",") + "\nSumme;18;7,5\n"
        ";;\nStand: 1. Mai;;\n* geschätzt;;",
        *(None, ("x", "y"), ["k0"], {}, 6),
        facts={"Lines not used": "1 empty line, 2 closing notes, 1 total line"},
    ),
    "all of them by choice": Case(
        "k,x,y\na,1,2\nb,3,4.5\nTotal,4,6.5", [[1, 2], [3, 4.5], [4, 6.5]], options={"lines": "all"}
    ),
    "a table below, with separators": Case(
        "k,x,y\n" + rows("k{i},{i},{h}", 6) + "\n,,\nname,mean,sd\na,2.5,1\nb,1,0.5\n",
        *(None, ("x", "y"), ["k0"], {}, 6),
        facts={"Lines not used": "4 second-table lines"},
    ),
    "a longer table beside, of fewer cells": Case(
        "k,x,y,,z\n" + rows("k{i},{i},{h},,{i}", 6) + "\n,,,,7" * 3,
        *(None, ("x", "y"), ["k0"], {}, 6),
        facts={"Left out": "z (of another table)", "Lines not used": "3 second-table lines"},
    ),
    "empty lines in the cells of a table": Case(
        'k,x,y\n"a\n\nb, c\n1, 2",1,2\nd,3,4.5\nf,1,1', [[1, 2], [3, 4.5]], ("x", "y"), n=3
    ),
    "blanks between tabs": Case(
        "Name\tDescription\ta\tb\n" + rows("G{i}\tgene {i}\t{i}\t{h}", 9),
        *(None, ("a", "b"), ["G0"], {}),
        facts={"Read as": "tabs", "Left out": "Description (9 different values in 9 rows)"},
    ),
    "separators at the ends": Case(
        "a,b,c\n1,2,3,\n4,5,6,\n7,8,9.5,", [[1, 2, 3]], ("a", "b", "c"), ids=["row-1"]
    ),
    "blanks and decimal commas": Case("1,5 2,5 3,5\n4,5 5,5 6,5\n7,5 8 9,1", [[1.5, 2.5, 3.5]]),
    "blanks in lines": Case("x  y\n 1   2\n3 4.5 \n", [[1, 2], [3, 4.5]], ("x", "y")),
    "old Macs": Case("\rx,y\r1,2\r\r3,4\r", [[1, 2], [3, 4]]),
    "Windows": Case("\r\nx,y\r\n1,2\r\n\r\n3,4\r\n", [[1, 2], [3, 4]]),
    "bars": Case("x|y\n1|2\n3|4", [[1, 2], [3, 4]]),
    "a separator by choice": Case("1:2:3\n4:5:6\n7:8:8", [[1, 2, 3]], options={"separator": ":"}),
}
_ART = "größe,b,art\n1,2,ö\n3,4,€\n5,6,ö\n7,8,ß"
_TITLES = {"cp1252": "Western European text (cp1252)", "utf-8": "UTF-8 text"}
_CITIES = {
    "cp1251": "город Москва Казань Омск население площадь",
    "koi8-r": "город Москва Казань Омск население площадь",
    "cp1253": "πόλη Αθήνα Πάτρα Λάρισα πληθυσμός",
    "cp932": "都市 東京 大阪 名古屋 人口 面積",
    "gb18030": "城市 北京 上海 广州 人口 面积",
    "big5": "城市 臺北 高雄 臺中 人口 面積",
    "cp949": "도시 서울 부산 대구 인구 면적",
}
ENCODINGS = {
    code: Case(
        *(_ART.encode(code), None, ("größe", "b"), None, {"art": ["ö", "€"]}),
        facts={"Read as": _TITLES.get(code.removesuffix("-sig"), "UTF-16 text")},
    )
    for code in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")
}
for code, (first, *names) in ((code, text.split()) for code, text in _CITIES.items()):
    lines = [f"{first},b,c", *(f"{name},1,{i}.5" for i, name in enumerate(names))]
    ENCODINGS[code] = Case("\n".join(lines).encode(code), None, ("b", "c"), names)
ENCODINGS |= {
    "of old Macs": Case(
        "Köln,Größe,Süd\n1,2,3\n4,5,6.5".encode("mac_roman"), None, ("Köln", "Größe", "Süd")
    ),
    "a stray byte": Case(
        "ort,a,b\nKøge,1,2\nÅrhus,2,3\n".encode() + b"Malm\xf6,3,4.5\n",
        ids=["Køge", "Århus", "Malmö"],
        facts={"Repaired bytes": "in line 4", "Read as": "UTF-8 text"},
    ),
    "by choice": Case(
        "Kšln,b\n1,2\n3,4.5".encode("cp1252"), None, ("Kšln", "b"), options={"encoding": "cp1252"}
    ),
    "JSON": Case(
        '[{"k": "ö", "x": 1.5, "y": null}, {"k": "u", "y": 2, "x": 1e3}, {"x": NaN, "y": 0}]',
        *([[1.5, GAP], [1000, 2], [GAP, 0]], ("x", "y"), None, {"k": ["ö", "u", ""]}),
        name="t.json",
    ),
    "packed JSON on lines": Case(
        gzip.compress(b'{"x": 1, "y": 2}\n{"x": 3, "y": 4.5}\n'), [[1, 2]], name="t.jsonl.gz"
    ),
    "packed": Case(gzip.compress(b"a,b\n1,2\n3,4"), [[1, 2], [3, 4]]),
}
_FOUR, _TABLE = "a,b\n1,2\n3,4", "k,a,b\n" + rows("{k},{i},{h}", 9)
_REFUSED: list[tuple[Any, ...]] = [  # content, words of the refusal, options
    (b"", "“t.csv” is empty"),
    ("  \n\n ", "only blanks"),
    ("a,b,c\n", "only a header line"),
    ("a,b\n1,2\n", "1 row of data; at least 2"),
    ("a,b\n1,2\n3,inf\n5,6\n", "“b” is infinite in row 2"),
    ("a,b\n1,2\n1,2\n1,2\n", "All 3 rows are the same"),
    ("a\n1\n2\n3\n", "has 1 feature column of 1; at least 2"),
    ("a,b\nx,y\nx,z\nw,z\nw,y", "has 0 feature columns of 2"),
    ("a\nx\ny", "has 0 feature columns of 1", {"transpose": True}),
    ("a,b\n1,2\n3,x\n5,6\n8,9", "has 1 feature column of 2"),
    (b"PK\x03\x04....", "is a zip file or a spreadsheet, not text"),
    (b"a,b\n\x01\x02,\xe9\n3,4\n", "is not utf-8 text"),
    (b"a,b\n1,\x00\n3,4\n", "zero bytes"),
    (b"\xff\xfe\x00", "is not utf-16 text"),
    (gzip.compress(b"a,b\n" + b"1,2\n3,4\n" * 500)[:-4], "truncated or damaged"),
    ('a,b\n1,"2\n3,4\n', "cannot be read|has 1 cell|no rows"),
    ("a,b\n1,2\n3,4,5\n6,7", "Line 3 of “t.csv” has 3 cells, but the first has 2"),
    ('a,b\n1,"2"\n\n3\n6,7', "Line 4 of “t.csv” has 1 cell"),
    ("a,b,c\n1,2,3\n4,5,6\n7,8", "Line 4 of “t.csv” has 2 cells"),
    ("a,b\n1e200,1\n2e200,2\n1,3", "“a” contains numbers up to 2e.200"),
    ("a,b\n1e-200,1\n2e-200,2\n3e-200,3", "“a” contains numbers that differ by"),
    ("a,b\n1,1.7e308\n2,1.7e308\n3,\n4,1", "“b” contains numbers up to 1.7e"),
    ("a,b,c\n1,,2\n3,,4\n5,,7", "no number in column “b”", {"roles": {"b": "feature"}}),
    ("a,b\n1,\n,4\n3,NA", r"cells, in “a” \(1\), “b” \(2\); let the model", {"missing": "refuse"}),
    (_FOUR, "one character; got '::'", {"separator": "::"}),
    (_FOUR, "a point or a comma; got '·'", {"decimal": "·"}),
    (_FOUR, "no encoding 'klingon'", {"encoding": "klingon"}),
    (_FOUR, "Line 9 of “t.csv” cannot be the header", {"header": 9}),
    (_FOUR, "mean, drop; got 'zero'", {"missing": "zero"}),
    (_FOUR, "A role must be one of id, label", {"roles": {"a": "x"}}),
    (_FOUR, "no column “c”", {"roles": {"c": "label"}}),
    (_FOUR, "Only one column", {"roles": {"a": "id", "b": "id"}}),
    (_FOUR, "with 2 values in all", {"image_shape": (3, 3)}),
    (_FOUR, "options separator.* got colour", {"colour": "grey"}),
    (_TABLE, "“k” cannot be a feature: it has words, such as “a”", {"roles": {"k": "feature"}}),
    (_TABLE, "“a” appears more than once", {"roles": {"k": "id"}}),
    (_TABLE, "3 columns, more than the limit of 2", {"limits": ReadLimits(columns=2)}),
    ("a,b\n" + "1,2\n" * 200, "the limit of 0 MB", {"limits": ReadLimits(n_bytes=500)}),
    ("a,b\n" + "1,2\n3,4\n" * 99, "198 x 2 numbers", {"limits": ReadLimits(n_bytes=1000)}),
    (gzip.compress(bytes(9_000_000)), "more than 2 MB", {"limits": ReadLimits(n_bytes=2_000_000)}),
]
REFUSALS = {
    words: Case(content, options=dict(*options), refusal=words)
    for content, words, *options in _REFUSED
}
_DOCX = "“letter.docx” .* copy its table into a spreadsheet"
REFUSALS["packed otherwise"] = Case("x", refusal="format; unpack it", name="t.csv.bz2")
REFUSALS["JSON"] = Case('{"a": [1]} 2', refusal="no list of records", name="t.json")
REFUSALS["unknown format"] = Case("x", refusal=_DOCX, name="letter.docx")
_BOOK = {
    "About": [["Made by", "us"], ["on", Day(45000)]],
    "Data": [
        *(["Results 2024"], [], ["id", "kind", "day", "mass", "width"]),
        *(
            [f"00{i}", "ab"[i % 2], Day(45000 + i), i + 0.25, None if i == 2 else i]
            for i in range(9)
        ),
        ["Total", None, None, 38.25, 34],
    ],
}
_MERGED = [
    *(["id", "Before", None, "After", None], [None, "a", "b", "a", "b"], ["n1", 1, 2, 3, 4.5]),
    *(["n2", 2, 2, 1, 4], ["n3", 0, 1, 3, 3]),
]
_TWO = xlsx({"A": [["a", "b"], [1, 2], [3, 4.5]], "B": [["c", "d"], [5, 6], [7, 8.5]]})
_WRITTEN = [["a", "b"], ["1 234,5", 2], ["7,25", 3.5], ["n/a", 4]]
_BESIDE = [["k", "a", "b", None, "sign", "means"]]
_BESIDE += [[f"k{i}", i, i * i % 7, *[None, f"s{i}", i][: 3 * (i < 3)]] for i in range(9)]
_BESIDE += [[], ["group", "mean"], ["g1", 2.5], ["g2", 3]]
SHEETS = {
    "tables beside and below": Case(
        *(xlsx({"A": _BESIDE}), None, ("a", "b"), ["k0"], {}, 9),
        facts={
            "Left out": "column 4 (empty), sign (of another table), means (of another table)",
            "Lines not used": "3 second-table lines",
        },
    ),
    "the sheet with numbers": Case(
        *(xlsx(_BOOK), [[0.25, 0], [1.25, 1], [2.25, GAP]], ("mass", "width"), ["000", "001"]),
        *({"kind": ["a", "b"]}, 9),
        facts={
            "Read as": "sheet “Data”, not read: About, header in line 3",
            "Left out": "day (dates)",
            "Lines not used": "1 title line, 1 total line",
        },
    ),
    "a sheet by choice": Case(_TWO, [[5, 6]], ("c", "d"), options={"sheet": "B"}),
    "no such sheet": Case(_TWO, options={"sheet": "C"}, refusal="no sheet “C”"),
    "merged cells": Case(
        xlsx({"A": _MERGED}, ("A1:A2", "B1:C1", "D1:E1")),
        *([[1, 2, 3, 4.5]], ("Before a", "Before b", "After a", "After b"), ["n1"]),
    ),
    "numbers written as text": Case(
        *(xlsx({"A": _WRITTEN}), [[1234.5, 2]]),
        facts={"Not numbers": "a: 1 cell: n/a"},
        options={"roles": {"a": "feature"}},
    ),
    "damaged": Case(xlsx(_BOOK)[:-300], refusal="damaged, locked by a password, or"),
}
SHEETS = {key: case._replace(name="t.xlsx") for key, case in SHEETS.items()}
_SIX = {"a": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5], "b": [3, 1, 2, 5, 4, 0]}
_DAYS = [datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in range(1, 7)]
PARQUET = {
    "declared types": Case(
        {
            **_SIX,
            "kind": pa.array([2019, 2020] * 3).dictionary_encode(),
            "flag": pa.array([True, False, None] * 2),
            "price": pa.array([decimal.Decimal(f"{i}.5") for i in range(6)]),
            "when": pa.array(_DAYS),
            "took": pa.array([datetime.timedelta(seconds=i) for i in range(6)]),
            "code": pa.array([b"x1", b"x2"] * 3, pa.binary(2)),
            "nothing": pa.nulls(6),
            "all lengths": pa.array([[1], [2, 3], [], [4, 4, 4], [5], [6, 7]]),
            "map": pa.array([[("k", 1.0)]] * 6, pa.map_(pa.string(), pa.float64())),
        },
        [[0.5, 3, 0.5]],
        ("a", "b", "price"),
        labels={"kind": ["2019", "2020"], "flag": ["True", "False", ""], "code": ["x1", "x2"]},
        facts={"Left out": "took (dates), nothing (empty), all lengths (lists), map (lists)"},
    ),
    "lists, short and missing ones": Case(
        {
            "v": pa.array([[1.0, 2.0]] * 18 + [None, [3.0]]),
            "w": pa.array([[[i, 2], [3, 4]] for i in range(20)]),
        },
        *([[1, 2, 0, 2, 3, 4]], ("v[0]", "v[1]", "w[0][0]", "w[0][1]", "w[1][0]", "w[1][1]")),
        facts={"Lists of another length": "v: 2 lists", "Missing": "4 cells"},
    ),
    "tensors": Case(
        {"t": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24.0).reshape(4, 2, 3))},
        [np.arange(6.0)],
    ),
    "texts are read as in CSV": Case(
        {"n": ["1.234,5", "7,25", "−3"], "zip": ["01", "02", "01"], "x": [1.0, 2, 3]},
        *([[1234.5, 1], [7.25, 2], [-3, 3]], ("n", "x"), None, {"zip": ["01", "02"]}),
    ),
    "row names of pandas": Case(
        pa.Table.from_pandas(pd.DataFrame(_SIX, index=list("uvwxyz"))),
        *(None, ("a", "b"), ["u", "v"]),
    ),
    "gaps by choice": Case(
        {"a": [1.0, -9, 3], "b": [1, 2, -9]}, [[1, 1], [GAP, 2]], options={"na_values": -9}
    ),
    "a name twice": Case(
        pa.Table.from_arrays([pa.array([1.0, 2]), pa.array([3.0, 5])], names=["a", "a"]),
        names=("a", "a (2)"),
    ),
    "images": Case(
        {"image": pa.array([{"bytes": b"x", "path": "a.png"}] * 3), "b": [1, 2, 3]},
        refusal="column “image” of “t.parquet” contains images; save each as a file",
    ),
    "cut off": Case(written(_SIX)[:-20], refusal="is not a Parquet file"),
    "one row": Case({"a": [1.0], "b": [2.0]}, refusal="1 row of data"),
    "one column": Case({"a": [1.0, 2.0]}, refusal="2 are needed, so change the columns' roles"),
    "too large": Case(
        *({"a": np.zeros(200_000), "b": np.zeros(200_000)},),
        options={"limits": ReadLimits(n_bytes=1_000_000)},
        refusal="would become 200,000 x 2 numbers",
    ),
    "lists of very many values": Case(
        *({"a": [1.0, 2.0], "b": [1.0, 2.5], "many": [[0.0] * 90_000] * 2},),
        options={"limits": ReadLimits(n_bytes=1_000_000)},
        refusal="unpacks to 1 MB, more than",
    ),
}
PARQUET = {key: case._replace(name="t.parquet") for key, case in PARQUET.items()}
_UNITS = (
    "# ours\nSurvey\nname,kind,a,b,when,one,none,text,mass\n"
    + "\n".join(
        f"p{i},{'ab'[i % 2]},{'n/a' if i == 4 else i / 2},{i * i % 7},0{i % 9 + 1}.06.2024,7,,"
        f"{'x' * 600},{i} {('kg', 'g')[i % 2]}"
        for i in range(30)
    )
    + f"\n{',' * 8}\nname,kind,a,b,when,one,none,text,mass\np30,a,3,1,09.06.2024,7,,y,3 kg"
    "\nTotal,,200,90,,,,,\nSource: us"
)
_MATRIX = np.random.default_rng(0).normal(size=(9, 4))
_PICTURES = {f"{'ab'[i % 2]}/{i}.png": made.encoded(made.noise(i, 6, 6)) for i in range(4)}
_VOXELS = np.random.default_rng(0).normal(20, 2, (8, 8, 6, 16)).astype(np.float32)
_VOXELS[2:6, 2:6, 2:5] += 900
_VOXELS[3, 3, 3, 2], _VOXELS[3, 4, 3] = GAP, 920
_READ_BY = "(another matrix; read it with array={0})"
UNUSABLE = {  # files with parts that cannot be used, each of which is named
    "a text": Case(
        *(_UNITS, None, ("a", "b"), ["p0"], {"kind": ["a", "b"]}, 31),
        facts={
            "Left out": "when (dates), one (one value), none (empty), text (long text), mass "
            "(numbers of different units: kg, g)",
            "Lines not used": "1 comment line, 1 title line, 1 closing note, 1 empty line, "
            "1 repeated header, 1 total line",
            "Not numbers": "a: 1 cell: n/a",
        },
    ),
    "a zip of images": Case(
        made.packed(_PICTURES | {"notes.txt": b"x", "a/data.csv": b"a,b\n1,2", "Thumbs.db": b""}),
        *(None, None, ["0", "2"], {"class": ["a", "a", "b"]}, 4),
        facts={"Files left out": "3: notes.txt, a/data.csv, Thumbs.db"},
        name="t.zip",
    ),
    "a zip of a table": Case(
        made.packed({"t.csv": b"a,b\n1,2\n3,4.5", "readme.md": b"x", "license": b"y"}),
        *([[1, 2]], ("a", "b")),
        facts={"Files left out": "2: license, readme.md"},
        name="t.zip",
    ),
    "files that are no images": Case(
        made.packed(_PICTURES | {"a/broken.png": b"no"}),
        facts={"Files left out": "1: a/broken.png"},
        options={"broken": "skip"},
        name="t.zip",
    ),
    "pages": Case(
        *(made.paged([made.noise(i, 6, 6) for i in range(4)]), None, None, ["t_1", "t_2"], {}, 4),
        facts={"Pages": "1 file with several pages, each read as an image"},
        name="t.tif",
    ),
    "arrays": Case(
        made.npz(X=_MATRIX, other=_MATRIX[:5], words=np.array(list("abcde")), y=np.arange(9) % 3),
        *(_MATRIX, None, None, {"y": [0, 1, 2]}),
        facts={"Arrays not used": f"words (5 values for 9 rows), other {_READ_BY.format('other')}"},
        name="t.npz",
    ),
    "variables": Case(
        made.mat(X=_MATRIX, label=np.zeros((0, 0)), info={"who": "us", "Z": _MATRIX[:4]}, note="n"),
        *(_MATRIX, None, None, {}),
        facts={
            "Arrays not used": "label (empty), info/who (1 value for 9 rows), note (1 value for 9 "
            f"rows), info/Z {_READ_BY.format('info/Z')}"
        },
        name="t.mat",
    ),
    "voxels": Case(
        *(made.nifti(_VOXELS), None, ..., ["voxel-2-2-3"]),
        facts={"Voxels": "left out: 2 that are constant or not finite"},
        name="t.nii",
    ),
}
_ALL = {"header": HEADERS, "numbers": NUMBERS, "gaps": GAPS, "text": TEXT, "lines": LINES}
_ALL |= {"encodings": ENCODINGS, "refusals": REFUSALS, "sheets": SHEETS, "parquet": PARQUET}
_ALL["unusable"] = UNUSABLE
CASES = {f"{name}: {key}": of[key] for name, of in _ALL.items() for key in of}


def check(case: Case, dataset: Dataset) -> None:
    if case.X is not None:
        np.testing.assert_array_equal(dataset.with_gaps()[: len(case.X)], np.array(case.X, float))
    if case.names is not ...:
        assert dataset.feature_names == case.names
    if case.ids is not None:
        assert dataset.ids[: len(case.ids)].tolist() == case.ids
    if case.labels is not None:
        assert list(dataset.labels) == list(case.labels)
        for label, first in case.labels.items():
            assert dataset.labels[label][: len(first)].tolist() == first
    assert case.n in (None, dataset.n_rows)


@pytest.mark.parametrize("key", CASES)
def test_a_file_gives_its_values_and_says_how_it_was_read(key):
    case = CASES[key]
    if case.refusal:
        with pytest.raises(InputError, match=case.refusal) as refused:
            opened(case)
        assert not faults_of(str(refused.value))
        return
    dataset = opened(case)
    found = facts(dataset.provenance["report"], dataset)
    check(case, dataset)
    for about, text in case.facts.items():
        assert text in found.get(about, "none"), found
        if text != "none":
            assert text in in_one_line(dataset.provenance["report"], dataset)


COMMANDS = [
    *("header: two years above whole numbers", "gaps: by choice"),
    *("numbers: percent, money, units and accounts", "numbers: cells that are no numbers"),
    *("text: leading zeros", "lines: the header again, empty rows, a total and a note"),
    *("encodings: a stray byte", "sheets: the sheet with numbers", "parquet: declared types"),
    *("refusals: “a” contains numbers up to 2e.200", "refusals: Line 4 of “t.csv” has 1 cell"),
    *(key for key in CASES if key.startswith("unusable:")),
]


@pytest.mark.parametrize("key", COMMANDS)
def test_the_command_line_says_the_same(key, tmp_path, capsys):
    case = CASES[key]
    path = tmp_path / case.name
    path.write_bytes(bytes_of(case))
    options = [f"--option={k}={json.dumps(v)}" for k, v in case.options.items()]
    code = main(["data", str(path), *options, "--columns"])
    out, err = capsys.readouterr()
    assert code == (1 if case.refusal else 0), err
    assert err.count("\n") == code
    lines = {line[2:].split("  ")[0]: line for line in out.splitlines()}
    for about, text in case.facts.items():
        if about != "Missing":
            assert text in lines[about[0].lower() + about[1:]]


def given_to_the_app(app: Any, case: Case) -> Any:
    """Give a file to the app, and press what its options are called there."""
    from appca.ui.arrivals import chips
    from appca.ui.state import KEYS
    from tests.pages import give
    from tests.ui.conftest import choose, go, press

    give(app, (case.name, bytes_of(case)))
    for name, value in case.options.items():
        opened = app.session_state[KEYS.arrival]
        go(app, "data/this")
        for column, role in value.items() if name == "roles" else ():
            choose(app, "preview", f"Role of {column}", role.capitalize())
        for chip in chips(opened.kind, opened.read(opened.draft).report, opened.draft):
            if chip.name == name:
                press(app, "read_as", "chip", name, list(chip.choices).index(value))
    if case.options and [one for one in app.button if one.key == "upload_use"]:
        app.button(key="upload_use").click().run()
    return app


_PRESSED = {"header", "decimal", "separator", "encoding", "transpose", "sheet", "roles", "broken"}
_CAN_BE = [
    key
    for key, case in CASES.items()
    if not set(case.options) - _PRESSED and not (case.refusal and case.options)
    if case.options.get("separator") != ":"  # which is not offered
]
_IN_THE_APP = {*_CAN_BE[2::12], *(key for key in _CAN_BE if key.startswith("unusable:"))}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of fits to a few rows
def test_the_app_shows_the_same(monkeypatch):
    from appca.ui import fits, services
    from tests.ui.conftest import APP, AppTest, go, healthy, sentences

    fit = fits.fit_run

    def begin(dataset: Dataset, config: Any, **given: Any) -> Any:  # how well does not matter here
        return fit(dataset, dataclasses.replace(config, stopped_at=2), **given)

    monkeypatch.setattr(fits, "fit_run", begin)
    app = AppTest.from_file(str(APP), default_timeout=60)
    go(app, "data/open")  # where nothing is fitted yet
    for key in sorted(_IN_THE_APP):
        case = CASES[key]
        given_to_the_app(app, case)
        if case.refusal:
            assert re.search(case.refusal, sentences(app)[0]), key
            continue
        check(case, services.datasets().get(healthy(app).session_state["config"].dataset))
        said = "".join(one.value for one in app.markdown).replace("\\", "")
        assert all(text in said for text in case.facts.values() if text != "none"), (key, said)


def test_options_of_the_command_line_change_how_a_table_is_read(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b,c\n" + rows("{i},{h},{i}.5,2.{i}", 9) + "\n9,-999,1,-999\n")
    main(["data", str(path), "--out", "-", "-q", "--na-values", "-999", "--feature", "id"])
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(table.columns) == ["row", "id", "a", "b", "c"]
    assert table["a"].isna().tolist() == [False] * 9 + [True]
    assert main(["data", str(path)]) == 0
    assert "--na-values=-999 makes them missing" in capsys.readouterr().out


def test_parts_of_a_parquet_table_are_one_and_their_folders_label_the_rows():
    parts = {
        "oak": {"a": pa.array([1, 2, 3]), "b": [0.5, 1.5, 2.5]},
        "elm%20tree": {"b": [1.0, 2, 3], "a": pa.array([1.0, None, 3.5])},
    }
    files = [(f"t/kind={key}/0.parquet", io.BytesIO(written(part))) for key, part in parts.items()]
    dataset = read_many(files, missing="model")
    np.testing.assert_array_equal(dataset.with_gaps()[:, 0], [1, 2, 3, 1, GAP, 3.5])
    assert dataset.feature_names == ("a", "b")
    assert dataset.labels["kind"].tolist() == ["oak"] * 3 + ["elm tree"] * 3
    other = ("t/kind=ash/0.parquet", io.BytesIO(written({"a": [1.0, 2]})))
    with pytest.raises(InputError, match="has other columns than the files before it"):
        read_many([*files, other])


def test_a_few_bytes_cannot_stand_for_gigabytes_of_text():
    codes = pa.array(np.zeros(50_000, np.int32))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["long" * 25_000]))
    numbers = {"a": range(50_000), "b": range(50_000, 100_000)}
    data = written(pa.table({"text": text, **numbers}), store_schema=False)
    assert len(data) < 2_000_000
    dataset = read("t.parquet", io.BytesIO(data))
    assert dataset.provenance["report"]["roles"]["text"] == "ignored"
    with pytest.raises(InputError, match="text of up to 100,000 characters, too long for a label"):
        read("t.parquet", io.BytesIO(data), roles={"text": "label"})


def test_squares_of_grey_values_are_taken_for_images(seed):
    pixels = np.random.default_rng(seed).integers(256, size=(9, 64))
    header = ",".join(["label", *(f"pixel{j}" for j in range(64))])
    lines = [",".join(map(str, [row % 3, *values])) for row, values in enumerate(pixels)]
    case = Case("\n".join([header, *lines]))
    dataset = opened(case)
    assert (dataset.image_shape, dataset.X.dtype) == ((8, 8), np.uint8)
    assert dataset.labels["label"][:4].tolist() == [0, 1, 2, 0]
    np.testing.assert_array_equal(dataset.images([3])[0], pixels[3].reshape(8, 8))
    assert opened(case, image_shape=None).X.dtype == np.float64
    assert opened(case, image_shape=(4, 16)).image_shape == (4, 16)
    few = opened(Case("\n".join(",".join(map(str, row // 16)) for row in pixels)))
    assert few.image_range == (0, 16)


def test_a_path_reads_like_a_file_object_and_the_object_stays_open(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\n1\t2\n3\t4")
    file = io.BytesIO(b"a\tb\n1\t2\n3\t4")
    file.read()
    assert read("x.tsv", tmp_path / "x.tsv").digest == read("x.tsv", file).digest
    assert not file.closed
    with pytest.raises(InputError, match="could not be opened"):
        read("x.csv", tmp_path / "none.csv")


def test_lines_of_another_width_are_found_with_and_without_quotes():
    lines = ["a,b", *(f"{i},{i * i}" for i in range(100)), "7,7,7", "1,2"]
    for head in ("a,b", '"a",b'):
        with pytest.raises(InputError, match="Line 102 ") as refused:
            opened(Case("\n".join([head, *lines[1:]])), limits=ReadLimits(head_rows=2))
        assert refused.value.report["head"] == {"a": ["0", "1"], "b": ["0", "1"]}
    assert opened(Case("a,b\n" + "1" * 100 + ".5,2\n3,4\n" + "5,6\n" * 40)).n_rows == 42


def test_long_runs_of_digits_are_looked_at_once():
    """Where a pattern tries all ways to divide them, this takes an hour."""
    long = "9" * 130_000
    with pytest.raises(InputError, match="1 feature column of 2"):
        opened(Case(f"a;b\n{long}x;1\n{long}y;2\n{long}x;3\n"))


_SIZES = st.floats(-(2.0**40), 2.0**40).map(lambda value: value if abs(value) > 1e-100 else 0.0)


@settings(max_examples=40)
@given(
    values=arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(2, 6)), elements=_SIZES),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_any_table_of_numbers_comes_back_number_for_number(values, separator):
    assume(not (values == values[0]).all())
    frame = pd.DataFrame(values, columns=[f"v{j}" for j in range(values.shape[1])])
    case = Case(frame.to_csv(sep=separator, index=False))
    roles = dict.fromkeys(frame.columns, "feature")
    np.testing.assert_array_equal(opened(case, roles=roles).X, values)


@settings(max_examples=40)
@given(
    cells=st.lists(
        st.lists(st.text(alphabet='ab,;"\n\t =<é', max_size=6), min_size=2, max_size=2),
        min_size=3,
        max_size=6,
    )
)
def test_any_text_is_read_back_or_refused_in_a_sentence(cells):
    frame = pd.DataFrame(cells, columns=["p", "q"]).assign(a=range(len(cells)), b=1.5)
    case = Case(frame.to_csv(index=False), options={"separator": ",", "header": True})
    dataset = read_or_refused(case)
    if dataset is None:
        return
    np.testing.assert_array_equal(dataset.X[:, 0], range(len(cells)))
    for key in {"p", "q"} & set(dataset.labels):
        assert dataset.labels[key].tolist() == [cell.strip() for cell in frame[key]]


@settings(max_examples=40)
@given(data=st.binary(max_size=400), name=st.sampled_from(["t.csv", "t.xlsx", "t.parquet"]))
def test_any_bytes_at_all_are_read_or_refused_in_a_sentence(data, name):
    dataset = read_or_refused(Case(data, name=name))
    assert dataset is None or np.isfinite(dataset.X).all()
