"""The demo's own input: jobs as a city's portal exports them, and photos as cameras make them.

The rows are invented and have the shapes and the faults of the real thing: local times in US
format, missing coordinates and due dates, mixed case, empty cells, and one row that cannot be true.
"""

import csv
from pathlib import Path

from PIL import Image, ImageDraw
from PIL.ExifTags import GPS, IFD, Base

COLUMNS = (
    "Unique Key",
    "Created Date",
    "Agency",
    "Agency Name",
    "Complaint Type",
    "Descriptor",
    "Location Type",
    "Incident Zip",
    "Incident Address",
    "Street Name",
    "Cross Street 1",
    "Cross Street 2",
    "Intersection Street 1",
    "Intersection Street 2",
    "City",
    "Landmark",
    "Due Date",
    "Borough",
    "Park Facility Name",
    "Bridge Highway Name",
    "Latitude",
    "Longitude",
)
_STREETS = (
    ("12 LAKE ROAD", "BROOKLYN", "40.6012", "-73.9411"),
    ("PARK ST / 3 AVENUE", "BROOKLYN", "40.6781", "-73.9822"),
    ("41 Mill Lane", "QUEENS", "40.7101", "-73.8301"),
    ("SHOP 7, BAZAAR", "BRONX", "", ""),
    ("9 CANAL STREET", "NEW YORK", "40.7155", "-74.0000"),
    ("PLANT 2, DOCK ROAD", "STATEN ISLAND", "40.6402", "-74.0871"),
    ("88 Orchard Street", "NEW YORK", "40.7185", "-73.9899"),
    ("N/A", "BRONX", "40.8501", "-73.8700"),
    ("230 HILL AVENUE", "QUEENS", "40.7402", "-73.7902"),
    ("5 Garden Place", "BROOKLYN", "40.6931", "-73.9961"),
    ("17 STATION ROAD", "QUEENS", "40.7000", "-73.8080"),
    ("64 BRIDGE STREET", "BROOKLYN", "40.7010", "-73.9840"),
)
_FAULTS = (
    ("Street Light Condition", "Street Light Out"),
    ("PLUMBING", "WATER SUPPLY"),
    ("Electric", "Meter Swap"),
    ("Water Leak", "Basement"),
)


def write_jobs(path: Path) -> Path:
    """Write the sample jobs as CSV; the last row names a day that no calendar has."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for number, (street, city, lat, lon) in enumerate(_STREETS):
            kind, descriptor = _FAULTS[number % len(_FAULTS)]
            due = f"04/{number + 9:02}/2026 05:00:00 PM" if number % 3 else ""
            writer.writerow(
                {
                    "Unique Key": 7_000_001 + number,
                    "Created Date": f"04/{number + 3:02}/2026 09:1{number % 6}:05 AM",
                    "Agency": "DOW",
                    "Agency Name": "Department of Works",
                    "Complaint Type": kind,
                    "Descriptor": descriptor,
                    "Incident Address": street,
                    "City": city,
                    "Borough": city,
                    "Due Date": due,
                    "Latitude": lat,
                    "Longitude": lon,
                }
            )
        writer.writerow({"Unique Key": 7_000_999, "Created Date": "02/30/2026 10:00:00 AM"})
    return path


def draw_photos(folder: Path) -> Path:
    """Draw a few small photos: with time and place, turned, and with no metadata at all."""
    folder.mkdir(parents=True, exist_ok=True)
    colours = ("darkolivegreen", "steelblue", "sienna", "slategray")
    for number, colour in enumerate(colours):
        image = Image.new("RGB", (640, 480), colour)
        pen = ImageDraw.Draw(image)
        pen.rectangle((180, 120, 460, 400), outline="white", width=6)
        pen.text((200, 140), f"meter {number + 1}", fill="white")
        exif = Image.Exif()
        if number != len(colours) - 1:
            exif[Base.Orientation] = 6 if number == 1 else 1
            details = exif.get_ifd(IFD.Exif)
            details[Base.DateTimeOriginal] = f"2026:04:0{number + 3} 11:3{number}:00"
            details[Base.OffsetTimeOriginal] = "-04:00"
            place = exif.get_ifd(IFD.GPSInfo)
            place[GPS.GPSLatitudeRef] = "N"
            place[GPS.GPSLatitude] = (40.0, 40.0 + number, 30.0)
            place[GPS.GPSLongitudeRef] = "W"
            place[GPS.GPSLongitude] = (73.0, 56.0, 12.0)
        image.save(folder / f"IMG_{412 + number:04}.jpg", quality=80, exif=exif)
    return folder
